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
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/textpage"
)

// Config configures who may read, and who may make changes.
type Config struct {
	// Hosts are the allowed Host headers, in addition to localhost and IP addresses.
	Hosts []string
	// TokenFile is a file with the bearer token for changes; white space around the token
	// is ignored. It is read for each change. Empty rejects all changes.
	TokenFile string
	// ReadTokenFile is a file with the bearer token for reading; the token in TokenFile is
	// accepted, too. Empty means that reading over a loopback address or a Unix socket
	// requires no token; over other addresses, data that names customers and endpoints
	// requires the token in TokenFile. Health and readiness never require a token.
	ReadTokenFile string
}

// A Gate checks requests. It is safe for concurrent use; make one with [New].
type Gate struct {
	config   atomic.Pointer[Config]
	logger   *slog.Logger
	failures failures
}

// New returns a Gate that logs rejected requests.
func New(c Config, logger *slog.Logger) *Gate {
	g := &Gate{logger: logger}
	g.Set(c)
	return g
}

// Set replaces the rules.
func (g *Gate) Set(c Config) { g.config.Store(&c) }

// Read returns a handler that checks the token for reading, if there is one.
func (g *Gate) Read(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, func(c *Config, r *http.Request) (int, error) {
		if c.ReadTokenFile == "" {
			return http.StatusOK, nil
		}
		return c.reads(r)
	})
}

// Private returns a handler for data that names customers and endpoints. Without a token
// for reading, only requests over loopback and Unix sockets receive it.
func (g *Gate) Private(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, func(c *Config, r *http.Request) (int, error) {
		if c.ReadTokenFile == "" && local(r) {
			return http.StatusOK, nil
		}
		return c.reads(r)
	})
}

// Change returns a handler that makes changes, for requests with the token for changes.
func (g *Gate) Change(next http.HandlerFunc) http.HandlerFunc {
	return g.allowed(next, func(c *Config, r *http.Request) (int, error) {
		if c.TokenFile == "" {
			return http.StatusForbidden, errors.New("no token for changes is configured: set admin.token_file")
		}
		return bears(r, c.TokenFile)
	})
}

func (g *Gate) allowed(next http.HandlerFunc, may func(*Config, *http.Request) (int, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if status, err := may(g.config.Load(), r); err != nil {
			g.deny(w, r, status, err)
			return
		}
		next(w, r)
	}
}

// reads returns why a request bears neither of the two tokens.
func (c *Config) reads(r *http.Request) (status int, err error) {
	status, err = http.StatusForbidden, errors.New("from other hosts this needs a token, and neither read_token_file nor token_file is configured")
	for _, file := range []string{c.ReadTokenFile, c.TokenFile} {
		if file == "" {
			continue
		}
		if status, err = bears(r, file); err == nil {
			return status, nil
		}
	}
	return status, err
}

var (
	errNoToken = errors.New(`no token was given: send the header "Authorization: Bearer TOKEN"`)
	errToken   = errors.New("the token is not the right one")
)

// bears returns why a request does not bear the token in a file.
func bears(r *http.Request, file string) (status int, err error) {
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
		return http.StatusUnauthorized, errNoToken
	}
	if subtle.ConstantTimeCompare(x[:], y[:]) != 1 {
		return http.StatusUnauthorized, errToken
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

// deny answers a request without permission.
func (g *Gate) deny(w http.ResponseWriter, r *http.Request, status int, err error) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	if more, ok := g.failures.log(time.Now()); ok {
		g.logger.Warn("a request of operators was rejected", "path", r.URL.Path, "from", r.RemoteAddr, "error", err, "more", more)
	}
	textpage.Serve(w, status, err.Error()+"\n")
}

// failures limits how often missing and wrong tokens are logged.
type failures struct {
	mu   sync.Mutex
	last time.Time
	more int // that were left out
}

// failureInterval is the least time between two messages: guessing tokens must not fill the
// disk.
const failureInterval = time.Second

// log reports whether to log a failure, and how many were not logged before it.
func (f *failures) log(now time.Time) (more int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.last.IsZero() && now.Sub(f.last) < failureInterval {
		f.more++
		return 0, false
	}
	more, f.more, f.last = f.more, 0, now
	return more, true
}
