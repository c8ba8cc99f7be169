package spillhttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/throttle"
)

// TestStrangersDoNotThrottleOthers: callers at an edge may leave as little time as they
// like, and the backend that then does not answer in it is still called for others.
// Callers inside are believed.
func TestStrangersDoNotThrottleOthers(t *testing.T) {
	for _, row := range []struct {
		boundary ingress.Boundary
		served   bool
	}{{ingress.Edge, true}, {ingress.Internal, false}} {
		t.Run(row.boundary.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := baseFunc(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == "/slow" {
						select {
						case <-r.Context().Done():
							return nil, r.Context().Err()
						case <-time.After(time.Second):
						}
					}
					return answer(r, 200, ""), nil
				})
				median := throttle.Config{Rand: func() float64 { return 0.5 }}
				client := mustTransport(t, TransportConfig{Base: backend, Route: noRoute, Egress: egress.Config{Throttle: median}})
				h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					out := must(http.NewRequestWithContext(r.Context(), http.MethodGet, "http://backend"+r.URL.Path, nil))
					resp, err := client.RoundTrip(out)
					switch {
					case errors.Is(err, spillway.ErrRejected):
						w.WriteHeader(http.StatusServiceUnavailable)
					case err != nil:
						w.WriteHeader(http.StatusGatewayTimeout)
					default:
						resp.Body.Close()
					}
				}), ingress.Config{Trust: ingress.Trust{Boundary: row.boundary}, ShedMode: spillway.ModeOff}, HandlerConfig{})
				get := func(path string, header http.Header) int {
					r := httptest.NewRequest(http.MethodGet, path, nil)
					r.Header = header
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return w.Code
				}
				for range 100 {
					if status := get("/slow", http.Header{headerDeadline: {"5"}}); status == http.StatusOK {
						t.Fatal("it was not late")
					}
				}
				served := true
				for range 20 {
					served = served && get("/", http.Header{}) == http.StatusOK
				}
				if served != row.served {
					t.Errorf("others are served: %v, want %v", served, row.served)
				}
			})
		})
	}
}
