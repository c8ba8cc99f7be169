package upstream

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/throttle"
)

// hanging is an upstream that never answers.
type hanging struct{ inFlight atomic.Int64 }

// RoundTrip implements [http.RoundTripper].
func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.inFlight.Add(1)
	defer h.inFlight.Add(-1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// enforced has a throttle without an observer of its decisions.
var enforced = egress.Config{ThrottleMode: spillway.ModeEnforce, Observer: spillway.ObserverFunc(func(spillway.Event) {})}

// TestKeptOpenRequests: requests that are kept open until a deadline of 20 s stay at the
// in-flight limit. If no limit is reached, nothing explains their timeouts, and the throttle
// admits one probe per second.
func TestKeptOpenRequests(t *testing.T) {
	for name, row := range map[string]struct {
		limit       int
		least, most int64
	}{
		"limit reached":     {800, 780, 800},
		"limit not reached": {4096, 15, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				upstream := new(hanging)
				x, err := newThrottles(&config.Cluster{Name: "web"}, enforced, nil)
				if err != nil {
					t.Fatal(err)
				}
				x.next, err = spillhttp.NewTransport(spillhttp.TransportConfig{
					Base: upstream, MaxBackends: 1, Egress: egress.Config{ThrottleMode: spillway.ModeOff, MaxInFlight: row.limit},
				})
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for range 120 * 100 { // for 120 s
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						defer cancel()
						r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://web/watch", nil)
						if resp, err := x.RoundTrip(r); err == nil {
							_ = resp.Body.Close()
						}
					})
					time.Sleep(10 * time.Millisecond)
				}
				if n := upstream.inFlight.Load(); n < row.least || n > row.most {
					t.Errorf("%d requests in flight, want %d to %d", n, row.least, row.most)
				}
				all.Wait()
			})
		})
	}
}

func routeName(r throttle.Route) string {
	if r.Namer != nil {
		return r.Namer.Route()
	}
	return r.Name
}

// TestRoutesOfRequests: which requests share a throttle once they fail.
func TestRoutesOfRequests(t *testing.T) {
	for _, row := range []struct {
		whole bool
		kind  string // of the content
		path  string
		want  string
	}{
		{false, "", "/users/17/export", "POST /users/*/export"},
		{false, "text/plain", "/v1/list", "POST /v1/list"},
		{false, "application/grpc", "/shop.v1.Orders/Get2", "/shop.v1.Orders/Get2"},
		{true, "", "/users/17/export", ""},
		{true, "application/grpc", "/shop.v1.Orders/Get2", ""},
	} {
		c := &config.Cluster{Name: "web"}
		c.Throttle.WholeCluster = row.whole
		x, err := newThrottles(c, enforced, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://web"+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.ProtoMajor = 2
		r.Header.Set("Content-Type", row.kind)
		if got := routeName(x.route(r)); got != row.want {
			t.Errorf("%s %s, whole %v: %q, want %q", row.kind, row.path, row.whole, got, row.want)
		}
	}
}
