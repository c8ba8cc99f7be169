// Package access decides who may ask a server of operators, and who may make changes.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/admin/loglimit"
	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// Rules say who may read and who may make changes.
type Rules struct {
	// Hosts are the allowed host names in requests of browsers, in addition to localhost and IP addresses.
	Hosts []string
	// Read and Change are the tokens for reading and for changes, which is for reading, too. Nil: there is none.
	Read, Change Token
	// Direct says that a request that another server has forwarded is not local, wherever it comes from.
	Direct bool
	// Words are what clients learn of the settings.
	Words Words
}

// Words name the settings of a program.
type Words struct {
	Hosts    string // where host names are set
	NoRead   string // a client of another host asks, and there is no token
	NoChange string // there is no token for changes
}

// A Gate checks requests by Rules. It reads a token for each request that needs one. It is safe for concurrent use; make
// one with [New].
type Gate struct {
	rules  atomic.Pointer[Rules]
	logger *slog.Logger
	lines  *loglimit.Rate // of missing and wrong tokens: guessing them must not fill the disk
}

// New returns a Gate that logs rejected requests, at most one per second.
func New(c Rules, logger *slog.Logger) *Gate {
	g := &Gate{logger: logger}
	g.lines, _ = loglimit.NewRate(1) // it is in range
	g.Set(c)
	return g
}

// Set replaces the rules.
func (g *Gate) Set(c Rules) { g.rules.Store(&c) }

// Read returns a handler that checks the token for reading, if there is one.
func (g *Gate) Read(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, func(c *Rules, r *http.Request) (int, error) { return mayRead(c, r, true) })
}

// Private returns a handler for data that names customers and endpoints. Without a token
// for reading, only requests over loopback and Unix sockets receive it.
func (g *Gate) Private(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, mayReadNames)
}

// SeesNames reports whether a request that [Gate.Read] lets pass would also pass [Gate.Private].
func (g *Gate) SeesNames(r *http.Request) bool {
	_, err := mayReadNames(g.rules.Load(), r)
	return err == nil
}

func mayReadNames(c *Rules, r *http.Request) (int, error) {
	return mayRead(c, r, local(r) && !(c.Direct && forwarded(r)))
}

// mayRead returns why a request may not read. Without a token for reading, requests that are open need none.
func mayRead(c *Rules, r *http.Request, open bool) (int, error) {
	if c.Read == nil && open {
		return http.StatusOK, nil
	}
	return bears(r, c.Words.NoRead, c.Read, c.Change)
}

// Change returns a handler that makes changes, for requests with the token for changes.
func (g *Gate) Change(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, func(c *Rules, r *http.Request) (int, error) {
		return bears(r, c.Words.NoChange, c.Change)
	})
}

func (g *Gate) allowed(next http.HandlerFunc, may func(*Rules, *http.Request) (int, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, err := may(g.rules.Load(), r)
		if err == nil {
			next(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		if g.lines.Admit(time.Now()) {
			g.logger.Warn("a request of operators was rejected", "path", r.URL.Path, "from", r.RemoteAddr, "error", err, "more", g.lines.Reset())
		}
		textpage.Serve(w, status, err.Error()+"\n")
	}
}

// bears returns why a request bears none of some tokens. Without tokens it returns none.
func bears(r *http.Request, none string, tokens ...Token) (status int, err error) {
	status, err = http.StatusForbidden, errors.New(none)
	for _, token := range tokens {
		if token != nil && err != nil {
			status, err = bearsToken(r, token)
		}
	}
	return status, err
}

// bearsToken returns why a request does not bear a token.
func bearsToken(r *http.Request, token Token) (status int, err error) {
	want, err := token()
	if short, ok := errors.AsType[ShortTokenError](err); ok {
		return http.StatusForbidden, fmt.Errorf("the token %w", short)
	}
	if err != nil {
		return http.StatusForbidden, errors.New("the token file cannot be read") // the client must not learn its path
	}
	// RFC 6750, section 2.1: no other scheme, and not the token alone.
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	x, y := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	if !ok {
		return http.StatusUnauthorized, errors.New(`no token was given: send the header "Authorization: Bearer TOKEN"`)
	}
	if subtle.ConstantTimeCompare(x[:], y[:]) != 1 {
		return http.StatusUnauthorized, errors.New("the token is not the right one")
	}
	return http.StatusOK, nil
}

// local reports whether a request arrived at a loopback address or a Unix socket. It checks
// the local address, because a client cannot choose it.
func local(r *http.Request) bool {
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	default:
		return false
	}
}

// forwarded reports whether another server has forwarded a request: its client may be anywhere.
func forwarded(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip", "X-Envoy-External-Address"},
		func(name string) bool { return r.Header.Get(name) != "" })
}
