package httpproxy

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// asked is an upstream that the test can make unhealthy. It counts requests other than health
// checks.
type asked struct {
	ill    atomic.Bool
	served atomic.Int64
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz" && a.ill.Load():
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/healthz":
	case r.URL.Path == "/grpc.health.v1.Health/Check":
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		if answer := frame("\x08\x01"); !a.ill.Load() && string(body) == frame("\x0a\x03a.B") {
			_, _ = io.WriteString(w, answer)
		} else {
			_, _ = io.WriteString(w, frame("\x08\x02"))
		}
		w.Header().Set("Grpc-Status", "0")
	default:
		a.served.Add(1)
	}
}

// until waits for a condition, for some seconds at most.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestUnhealthyEndpointsGetNothing(t *testing.T) {
	quiet(t)
	for _, health := range []config.Health{{}, {Type: "grpc", Service: "a.B"}} {
		health.Interval, health.Timeout = 10*time.Millisecond, 5*time.Second
		var ups [2]asked
		first, _ := upstreamAt(t, &ups[0])
		second, _ := upstreamAt(t, &ups[1])
		url, p := front(t, http.NotFoundHandler(), func(c *config.Config) {
			c.Clusters[0].Endpoints, c.Clusters[0].Health = []string{first, second}, &health
		})
		is := func(a, b upstream.Health, panics bool) func() bool {
			return func() bool {
				s := p.Stats(time.Now()).Clusters["upstream"]
				return s.Endpoints[0].Health == a && s.Endpoints[1].Health == b && s.Panics == panics
			}
		}
		c := client(t, false)
		send := func() (int64, int64) {
			before := [2]int64{ups[0].served.Load(), ups[1].served.Load()}
			for range 60 {
				do(t, c, http.MethodGet, url, "")
			}
			return ups[0].served.Load() - before[0], ups[1].served.Load() - before[1]
		}
		until(t, "both are healthy", is(upstream.Healthy, upstream.Healthy, false))
		if a, b := send(); a == 0 || b == 0 {
			t.Errorf("%s: healthy endpoints get %d and %d", health.Type, a, b)
		}
		ups[0].ill.Store(true)
		until(t, "one is not", is(upstream.Unhealthy, upstream.Healthy, false))
		if a, b := send(); a != 0 || b != 60 {
			t.Errorf("%s: the unhealthy endpoint gets %d, the other %d", health.Type, a, b)
		}
		ups[1].ill.Store(true)
		until(t, "both are not", is(upstream.Unhealthy, upstream.Unhealthy, true))
		if a, b := send(); a == 0 || b == 0 {
			t.Errorf("%s: unhealthy endpoints get %d and %d", health.Type, a, b)
		}
		ups[0].ill.Store(false)
		until(t, "one is again", is(upstream.Healthy, upstream.Unhealthy, false))
		if a, b := send(); a != 60 || b != 0 {
			t.Errorf("%s: the healthy endpoint gets %d, the other %d", health.Type, a, b)
		}
		// The health of endpoints is kept across a change of the cluster.
		changed := p.config
		again := *changed
		again.Clusters = append([]config.Cluster(nil), changed.Clusters...)
		again.Clusters[0].MaxConnections = 7
		again.Clusters[0].Health = new(health)
		again.Clusters[0].Health.Interval = time.Hour
		if err := p.Update(&again); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(time.Now()).Clusters["upstream"]; s.Endpoints[1].Health != upstream.Unhealthy {
			t.Errorf("after a change: %+v", s.Endpoints)
		}
	}
}
