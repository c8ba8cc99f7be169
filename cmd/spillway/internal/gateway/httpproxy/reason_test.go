package httpproxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestReasons: what clients learn of a rejection by the proxy and by its upstream, by boundary and
// setting. The names of reasons, levels and gates of the upstream never leave an edge.
func TestReasons(t *testing.T) {
	quiet(t)
	secret := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Envoy-Overloaded", "true")
		w.Header().Set("X-Overload-Reason", "higher_class")
		if r.Header.Get("Content-Type") == "application/grpc" {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "14")
			w.Header().Set("Grpc-Message", "overloaded (higher_class)")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "rejected: higher_class\n")
	})
	for _, row := range []struct {
		boundary, reasons string
		own, upstream     string // the reasons that clients see
	}{
		{"edge", "", "overload", "overload"},
		{"edge", "none", "", ""},
		{"edge", "full", "rate_limit", "higher_class"},
		{"internal", "", "rate_limit", "higher_class"},
		{"internal", "coarse", "overload", "overload"},
		{"internal", "none", "", ""},
	} {
		for limited, want := range map[bool]string{true: row.own, false: row.upstream} {
			url, _ := front(t, secret, func(c *config.Config) {
				l, x := &c.Listeners[0], &c.Clusters[0]
				l.Boundary, l.Peers, l.Reasons = row.boundary, []string{"127.0.0.0/8"}, row.reasons
				x.Retry.Mode, x.Throttle.Mode, x.Shed.Mode, c.Mode = "off", "off", "off", "enforce"
				if limited {
					x.RateLimit = config.RateLimit{Rate: 0.001, BurstSeconds: 1000}
				}
			})
			for _, grpc := range []bool{false, true} {
				var resp *http.Response
				body := ""
				for range 3 { // the first has a token
					if grpc {
						resp, body = do(t, client(t, true), http.MethodPost, url, "", "Content-Type", "application/grpc")
					} else {
						resp, body = do(t, client(t, false), http.MethodGet, url, "")
					}
				}
				said := strings.Join(resp.Header["X-Overload-Reason"], ",")
				all := body + resp.Header.Get("Grpc-Message") + resp.Trailer.Get("Grpc-Message")
				full := want != "" && want != "overload"
				if said != want || strings.Contains(all, "higher_class") != (full && !limited) || strings.Contains(all, "rate_limit") != (full && limited) {
					t.Errorf("%+v, limited %v, grpc %v: %q, %q, want %q", row, limited, grpc, said, all, want)
				}
				if !grpc && resp.ContentLength != int64(len(body)) {
					t.Errorf("%+v: Content-Length %d, %d bytes", row, resp.ContentLength, len(body))
				}
			}
			if resp, body := do(t, client(t, false), http.MethodHead, url, ""); body != "" || resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("HEAD: %d, %q", resp.StatusCode, body)
			}
		}
	}
}
