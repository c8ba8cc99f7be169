package spillhttp

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/idle"
	"github.com/seed90641741/spillway/shed"
)

// Streams of events whose handlers wait for the next one are no work: with as many of them as may be in flight, no request is
// rejected. A stream that writes again and again is work.
func TestIdleStreams(t *testing.T) {
	const most = 4
	for name, works := range map[string]bool{"idle": false, "works": true} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, protocol string, early bool) {
				mux := http.NewServeMux()
				mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
					for {
						_, _ = io.WriteString(w, "data: x\n\n")
						w.(http.Flusher).Flush()
						if !works {
							<-r.Context().Done()
						}
						select {
						case <-r.Context().Done():
							return
						case <-time.After(idle.After / 2):
						}
					}
				})
				mux.Handle("/", bare)
				h := mustHandler(t, mux, ingress.Config{MaxInFlight: most, Shed: shed.Config{MaxWait: 2 * idle.After}}, HandlerConfig{})
				s := open(t, protocol, h, early)
				ctx, cancel := context.WithCancel(t.Context())
				for range most {
					r := newRequest(t, ctx, http.MethodGet, nil)
					r.URL.Path = "/events"
					resp := must(s.base.RoundTrip(r))
					defer resp.Body.Close()
					go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
				}
				served, calls := 0, 20
				if works {
					calls = 1 // each waits, and in the end the streams would be parked
				}
				for range calls {
					resp := must(s.base.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil)))
					if resp.Body.Close(); resp.StatusCode == http.StatusNoContent {
						served++
					}
				}
				time.Sleep(2*idle.After + idle.After/4) // between two events
				n := h.ingress.Stats(time.Now()).InFlight.InFlight
				if works && n != most || !works && (served != 20 || n != 0) {
					t.Errorf("%d of 20 requests served, %d streams in flight", served, n)
				}
				cancel()
				synctest.Wait()
				s.close()
				nothingLeft(t, h)
			})
		})
	}
}

// Where Check of the health service of gRPC bypasses the Handler, so does Watch: its clients ask the same.
func TestWatchIsHealthToo(t *testing.T) {
	h := mustHandler(t, bare, ingress.Config{}, HandlerConfig{HealthPaths: []string{"/grpc.health.v1.Health/Check"}})
	for path, want := range map[string]bool{"/grpc.health.v1.Health/Check": true, "/grpc.health.v1.Health/Watch": true, "/grpc.health.v1.Health/": false} {
		r := incoming(t)
		r.URL.Path = path
		if got := h.unseen(r); got != want {
			t.Errorf("%s bypasses the Handler: %v", path, got)
		}
	}
}
