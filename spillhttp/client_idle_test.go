package spillhttp

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// Answers that wait for an event teach a client nothing, however many and for however long: its other requests are sent. Max_requests
// counts them, as in Envoy.
func TestIdleAnswersOfAClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const idle = 200
		rt := mustTransport(t, TransportConfig{
			Egress: egress.Config{MaxInFlight: idle + 1},
			Base: baseFunc(func(req *http.Request) (*http.Response, error) {
				resp := answer(req, http.StatusOK, "")
				if req.URL.Path == "/events" {
					resp.Body = events{req.Context()}
				}
				return resp, nil
			}),
		})
		get := func(ctx context.Context, path string) {
			req := newRequest(t, ctx, http.MethodGet, nil)
			req.URL.Path = path
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if path == "/events" {
				go func() {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}()
				return
			}
			_ = resp.Body.Close()
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for range idle {
			get(ctx, "/events")
		}
		for i := range 100 {
			time.Sleep(10 * time.Second)
			if i == 50 { // half of the requests come after the end of all answers
				leave()
			}
			get(t.Context(), "/other")
		}
		for _, st := range rt.Stats(time.Now()) {
			if p := st.Throttle[spillway.Critical.Index()].Probability; p > 0 || st.InFlight.InFlight != 0 {
				t.Errorf("the throttle rejects with probability %v, %d are in flight", p, st.InFlight.InFlight)
			}
		}
	})
}

// events is a body that waits for events which never come.
type events struct{ ctx context.Context }

func (e events) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (events) Close() error { return nil }
