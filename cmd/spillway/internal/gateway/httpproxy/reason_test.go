package httpproxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
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
				if line := map[bool]string{false: "rejected: " + want + "\n"}[want == ""]; !grpc && body != line {
					t.Errorf("%+v, limited %v: the body is %q, want %q", row, limited, body, line)
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

// TestOneWordForOneThing: all rejections by the proxy have the same form, whichever gate has rejected the request.
// The body is one line with the reason of the header, and the scope says how far the rejection reaches.
func TestOneWordForOneThing(t *testing.T) {
	quiet(t)
	came := make(chan struct{}, 9)
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			came <- struct{}{}
			<-r.Context().Done()
		}
	})
	for name, row := range map[string]struct {
		change       func(c *config.Config)
		reason       string // in full
		scope, retry string
	}{
		"rate limit":      {func(c *config.Config) { c.Clusters[0].RateLimit = config.RateLimit{Rate: 0.001} }, "rate_limit", "task", ""},
		"in flight":       {func(c *config.Config) { c.Clusters[0].Inflight.MaxInFlight = 1 }, "max_in_flight", "service", "false"},
		"of the listener": {func(c *config.Config) { c.Listeners[0].MaxRequests = 1 }, "max_requests", "task", ""},
	} {
		for _, full := range []bool{false, true} {
			url, _ := front(t, slow, func(c *config.Config) {
				c.Mode, c.Clusters[0].Retry.Mode, c.Clusters[0].Throttle.Mode, c.Clusters[0].Shed.Mode = "enforce", "off", "off", "off"
				c.Listeners[0].Reasons = map[bool]string{true: "full", false: "coarse"}[full]
				row.change(c)
			})
			want := map[bool]string{true: row.reason, false: "overload"}[full]
			ctx, cancel := context.WithCancel(t.Context())
			held, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/slow", nil)
			if err != nil {
				t.Fatal(err)
			}
			var holding sync.WaitGroup
			holding.Go(func() {
				if resp, err := client(t, false).Do(held); err == nil {
					resp.Body.Close()
				}
			})
			<-came
			resp, body := do(t, client(t, false), http.MethodGet, url, "")
			h := resp.Header
			if resp.StatusCode != http.StatusServiceUnavailable || body != "rejected: "+want+"\n" || h.Get(reasonHeader) != want || h.Get(scopeHeader) != row.scope ||
				h.Get("X-Should-Retry") != row.retry || h.Get("X-Envoy-Overloaded") != "true" || len(h[scopeHeader]) != 1 {
				t.Errorf("%s, full %v: %d %q %v", name, full, resp.StatusCode, body, h)
			}
			resp, _ = do(t, client(t, true), http.MethodPost, url, "", "Content-Type", "application/grpc")
			message := "overloaded"
			if full {
				message += " (" + row.reason + ")"
			}
			if h := resp.Header; h.Get("Grpc-Status") != "14" || h.Get("Grpc-Message") != message || h.Get(scopeHeader) != row.scope {
				t.Errorf("%s, full %v, gRPC: %v, want %q", name, full, h, message)
			}
			cancel()
			holding.Wait()
		}
	}
	url, _ := front(t, slow, func(c *config.Config) { c.Routes = []config.Route{{Path: "/a"}}; c.Listeners[0].MaxBodyBytes = 1 })
	for path, want := range map[string]string{"/b": "rejected: no_route (no route)\n", "/a": "rejected: bad_request (the body is too long)\n"} {
		if _, body := do(t, client(t, false), http.MethodPost, url+path, strings.Repeat("x", len(path)-1+map[string]int{"/a": 1}[path])); body != want {
			t.Errorf("%s: %q, want %q", path, body, want)
		}
	}
}
