package spillhttp

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed90641741/spillway/ingress"
)

// Serve and ServeTLS limit the heads of requests to 64 KiB, unless the server has a limit of its own: parsing the 1 MiB that net/http
// allows costs more than most requests, and comes before the Handler can reject anything.
func TestHeadsAreLimited(t *testing.T) {
	for _, row := range []struct {
		limit, head, status int
	}{
		{0, 32 << 10, http.StatusNoContent},
		{0, 80 << 10, http.StatusRequestHeaderFieldsTooLarge},
		{200 << 10, 80 << 10, http.StatusNoContent},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := mustHandler(t, bare, ingress.Config{}, HandlerConfig{})
			s := openWith(t, "HTTP1", h, true, func(s *http.Server) { s.MaxHeaderBytes = row.limit })
			defer s.close()
			r := newRequest(t, t.Context(), http.MethodGet, nil)
			r.Header.Set("X-Long", strings.Repeat("x", row.head))
			resp := must(s.base.RoundTrip(r))
			defer resp.Body.Close()
			if resp.StatusCode != row.status {
				t.Errorf("a head of %d bytes with MaxHeaderBytes %d: %d, want %d", row.head, row.limit, resp.StatusCode, row.status)
			}
		})
	}
	for set, want := range map[int]int{0: 64 << 10, 5000: 5000} {
		h := mustHandler(t, bare, ingress.Config{}, HandlerConfig{})
		s := &http.Server{Handler: h, MaxHeaderBytes: set}
		closed := &pipes{done: make(chan struct{})}
		closed.Close()
		if err := h.ServeTLS(s, closed, "", ""); err == nil {
			t.Error("serves from a closed listener")
		}
		if s.MaxHeaderBytes != want {
			t.Errorf("with TLS %d became %d, want %d", set, s.MaxHeaderBytes, want)
		}
	}
}
