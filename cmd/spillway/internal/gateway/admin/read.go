package admin

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/textpage"
)

// read returns a handler that checks the token for reading, if there is one.
func (s *Server) read(next http.HandlerFunc) http.HandlerFunc {
	return s.allowed(next, func(a *Access, r *http.Request) (int, error) {
		if a.ReadTokenFile == "" {
			return http.StatusOK, nil
		}
		return a.reads(r)
	})
}

// private returns a handler for data that names customers and endpoints. Without a token
// for reading, only requests over loopback and Unix sockets receive it.
func (s *Server) private(next http.HandlerFunc) http.HandlerFunc {
	return s.allowed(next, func(a *Access, r *http.Request) (int, error) {
		if a.ReadTokenFile == "" && local(r) {
			return http.StatusOK, nil
		}
		return a.reads(r)
	})
}

func (s *Server) allowed(next http.HandlerFunc, may func(*Access, *http.Request) (int, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if status, err := may(s.access.Load(), r); err != nil {
			s.deny(w, r, status, err)
			return
		}
		next(w, r)
	}
}

// reads returns why a request bears neither of the two tokens.
func (a *Access) reads(r *http.Request) (status int, err error) {
	status, err = http.StatusForbidden, errors.New("from other hosts this needs a token, and neither read_token_file nor token_file is configured")
	for _, file := range []string{a.ReadTokenFile, a.TokenFile} {
		if file == "" {
			continue
		}
		if status, err = bears(r, file); err == nil {
			return status, nil
		}
	}
	return status, err
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
func (s *Server) deny(w http.ResponseWriter, r *http.Request, status int, err error) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	if more, ok := s.failures.log(time.Now()); ok {
		s.logger.Warn("a request of operators was rejected", "path", r.URL.Path, "from", r.RemoteAddr, "error", err, "more", more)
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
