package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/textpage"
)

// errToken is returned for a change without the right token.
var errToken = errors.New("the token is not the right one")

// changed returns a handler that makes changes, one at a time, for authorized clients.
func (s *Server) changed(change func(body string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if status, err := s.access.Load().authorize(r); err != nil {
			s.deny(w, r, status, err)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		if err != nil {
			textpage.Serve(w, http.StatusBadRequest, "the body is too long, or did not come\n")
			return
		}
		s.change.Lock()
		defer s.change.Unlock()
		done, err := change(strings.TrimSpace(string(body)))
		if err != nil {
			textpage.Serve(w, http.StatusUnprocessableEntity, err.Error()+"\n")
			return
		}
		s.logger.Warn("changed over the API", "path", r.URL.Path, "from", r.RemoteAddr, "what", done)
		textpage.Serve(w, http.StatusOK, done+"\n")
	}
}

// authorize returns why a request may not make a change.
func (a *Access) authorize(r *http.Request) (status int, err error) {
	if a.TokenFile == "" {
		return http.StatusForbidden, errors.New("changes want a token, and no token_file is configured")
	}
	return bears(r, a.TokenFile)
}

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
	if !ok || subtle.ConstantTimeCompare(x[:], y[:]) != 1 {
		return http.StatusUnauthorized, errToken
	}
	return http.StatusOK, nil
}

// setMode sets the mode that is in the body.
func (s *Server) setMode(body string) (string, error) {
	var mode spillway.Mode
	if err := mode.UnmarshalText([]byte(body)); err != nil {
		return "", err
	}
	if err := s.proxy.SetMode(mode); err != nil {
		return "", err
	}
	return "mode " + body + " until the configuration is next read", nil
}

func (s *Server) reload(string) (string, error) {
	if err := s.proxy.Reload(); err != nil {
		return "", err
	}
	return "the configuration was read", nil
}
