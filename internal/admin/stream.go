package admin

import (
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// writeTimeout is how long a browser may take to receive a tick.
const writeTimeout = 5 * time.Second

// addressOf returns the client address of a request; for IPv6 the /64, because one host can
// use all of it.
func addressOf(r *http.Request) string {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return decisions.Network(a.Addr())
}

// serveStream sends the history, and then each tick, as server-sent events.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	first, ticks, err := s.sampler.follow(addressOf(r))
	if err != nil {
		w.Header().Set("Retry-After", "10")
		textpage.Serve(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	defer s.sampler.leave(ticks)
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	for text := append([]byte("retry: 2000\n"), first...); ; {
		// A program may have wrapped the writer so that it has no deadline.
		if err := to.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return
		}
		if _, err := w.Write(text); err != nil || to.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		case text = <-ticks:
		}
	}
}
