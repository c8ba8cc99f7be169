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
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/loglimit"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/textpage"
)

// A Gate checks requests by the hosts and the token files of a configuration. It reads a token file
// for each request that needs a token. It is safe for concurrent use; make one with [New].
type Gate struct {
	config atomic.Pointer[config.Admin]
	logger *slog.Logger
	lines  *loglimit.Rate // of missing and wrong tokens: guessing them must not fill the disk
}

// New returns a Gate that logs rejected requests, at most one per second.
func New(c config.Admin, logger *slog.Logger) *Gate {
	g := &Gate{logger: logger}
	g.lines, _ = loglimit.NewRate(1) // it is in range
	g.Set(c)
	return g
}

// Set replaces the rules.
func (g *Gate) Set(c config.Admin) { g.config.Store(&c) }

// Read returns a handler that checks the token for reading, if there is one.
func (g *Gate) Read(next http.HandlerFunc) http.HandlerFunc {
	return g.reading(next, func(*http.Request) bool { return true })
}

// Private returns a handler for data that names customers and endpoints. Without a token
// for reading, only requests over loopback and Unix sockets receive it.
func (g *Gate) Private(next http.HandlerFunc) http.HandlerFunc {
	return g.reading(next, local)
}

// SeesNames reports whether a request that [Gate.Read] lets pass would also pass [Gate.Private].
func (g *Gate) SeesNames(r *http.Request) bool {
	_, err := mayRead(g.config.Load(), r, local)
	return err == nil
}

// reading returns a handler that checks the token for reading. Without one, requests that are open
// need none.
func (g *Gate) reading(next http.HandlerFunc, open func(*http.Request) bool) http.HandlerFunc {
	return g.allowed(next, func(c *config.Admin, r *http.Request) (int, error) { return mayRead(c, r, open) })
}

// mayRead returns why a request may not read. Without a token for reading, requests that are open need none.
func mayRead(c *config.Admin, r *http.Request, open func(*http.Request) bool) (int, error) {
	if c.ReadToken == "" && open(r) {
		return http.StatusOK, nil
	}
	return bears(r, "from other hosts this needs a token, and neither read_token_file nor token_file is configured", c.ReadToken, c.TokenFile)
}

// Change returns a handler that makes changes, for requests with the token for changes.
func (g *Gate) Change(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, func(c *config.Admin, r *http.Request) (int, error) {
		return bears(r, "no token for changes is configured: set admin.token_file", c.TokenFile)
	})
}

func (g *Gate) allowed(next http.HandlerFunc, may func(*config.Admin, *http.Request) (int, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, err := may(g.config.Load(), r)
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

// bears returns why a request bears none of the tokens in some files; empty is no file. Without files
// it returns none.
func bears(r *http.Request, none string, files ...string) (status int, err error) {
	status, err = http.StatusForbidden, errors.New(none)
	for _, file := range files {
		if file != "" && err != nil {
			status, err = bearsToken(r, file)
		}
	}
	return status, err
}

// bearsToken returns why a request does not bear the token in a file.
func bearsToken(r *http.Request, file string) (status int, err error) {
	want, err := keys.Token(file)
	if short, ok := errors.AsType[keys.ShortTokenError](err); ok {
		return http.StatusForbidden, fmt.Errorf("the token file %w", short)
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
