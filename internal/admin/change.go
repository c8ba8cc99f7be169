package admin

import (
	"io"
	"net/http"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/forecast"
	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// changed returns a handler that makes changes, one at a time, for authorized clients.
func (s *Server) changed(change func(body string) (string, error)) http.HandlerFunc {
	return s.access.Change(func(w http.ResponseWriter, r *http.Request) {
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
	})
}

// setMode sets the mode. before is the state until now, of what gates that observe have counted.
func setMode(p Program, before *State, body string) (string, error) {
	var mode spillway.Mode
	if err := mode.UnmarshalText([]byte(body)); err != nil {
		return "", err
	}
	kept, err := p.SetMode(mode)
	if err != nil {
		return "", err
	}
	done := "mode " + body + " until the configuration is next read"
	if len(kept) > 0 {
		done += "; not changed: " + strings.Join(kept, ", ")
	}
	if f := &before.Mean; mode == spillway.ModeEnforce && before.Mode != mode {
		done += "\n" + (&forecast.Figures{Seconds: f.Seconds, Offered: f.Offered, Would: f.Would, Ended: f.Ended}).Words(before.Mode)
	}
	return done, nil
}

func reload(p Program) (string, error) {
	if err := p.Reload(); err != nil {
		return "", err
	}
	return "the configuration was read", nil
}
