package httpproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestThresholds(t *testing.T) {
	c := &config.Health{HealthyThreshold: 2, UnhealthyThreshold: 3}
	for _, row := range []struct{ checks, states string }{
		{"+", "H"},
		{"-", "U"},
		{"+--+--+---+-+-++", "HHHHHHHHHUUUUUUH"},
		{"--++--", "UUUHHH"},
	} {
		var h health
		states := ""
		for i, x := range row.checks {
			var err error
			if x == '-' {
				err = errors.New("no")
			}
			was := h.is()
			if changed := h.take(c, err); changed != (h.is() != was) {
				t.Errorf("%s: check %d says changed: %v", row.checks, i, changed)
			}
			states += strings.ToUpper(h.is().String()[:1])
		}
		if states != row.states {
			t.Errorf("%s: %s, want %s", row.checks, states, row.states)
		}
		if int(h.checks.Load()) != len(row.checks) || int(h.bad.Load()) != strings.Count(row.checks, "-") {
			t.Errorf("%s: counted %d checks, %d bad", row.checks, h.checks.Load(), h.bad.Load())
		}
	}
}

// TestIntervals wants checks to begin when they should, and not all at once.
func TestIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		c := &checker{config: &config.Health{Interval: time.Second, Jitter: 0.2, Timeout: 100 * time.Millisecond, HealthyThreshold: 1, UnhealthyThreshold: 1}}
		c.probe = func(context.Context, string) error {
			at = append(at, time.Since(begun))
			return nil
		}
		e, err := newEndpoints(&config.Cluster{Endpoints: []string{"x:1"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.close = func() {}
		c.start(t.Context(), slog.New(slog.DiscardHandler), e)
		time.Sleep(50 * time.Second)
		c.stop()
		steps := make(map[time.Duration]bool)
		for i := 2; i < len(at); i++ { // the first wait is shorter, so that endpoints do not stay in step
			step := at[i] - at[i-1]
			steps[step] = true
			if step < 800*time.Millisecond || step > 1200*time.Millisecond {
				t.Errorf("%v between two checks", step)
			}
		}
		if at[0] != 0 || len(at) < 42 || len(steps) < 40 {
			t.Errorf("%d checks at %d different intervals, the first after %v", len(at), len(steps), at[0])
		}
	})
}

// asked is an upstream that can be told to be ill. It counts what is no check.
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

// until waits for something, for some seconds at most.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); <-time.After(time.Millisecond) {
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
		is := func(a, b Health, panics bool) func() bool {
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
		until(t, "both are healthy", is(Healthy, Healthy, false))
		if a, b := send(); a == 0 || b == 0 {
			t.Errorf("%s: healthy endpoints get %d and %d", health.Type, a, b)
		}
		ups[0].ill.Store(true)
		until(t, "one is not", is(Unhealthy, Healthy, false))
		if a, b := send(); a != 0 || b != 60 {
			t.Errorf("%s: the unhealthy endpoint gets %d, the other %d", health.Type, a, b)
		}
		ups[1].ill.Store(true)
		until(t, "both are not", is(Unhealthy, Unhealthy, true))
		if a, b := send(); a == 0 || b == 0 {
			t.Errorf("%s: unhealthy endpoints get %d and %d", health.Type, a, b)
		}
		ups[0].ill.Store(false)
		until(t, "one is again", is(Healthy, Unhealthy, false))
		if a, b := send(); a != 60 || b != 0 {
			t.Errorf("%s: the healthy endpoint gets %d, the other %d", health.Type, a, b)
		}
		// What is known outlives a change of the cluster.
		changed := p.config
		again := *changed
		again.Clusters = append([]config.Cluster(nil), changed.Clusters...)
		again.Clusters[0].MaxConnections = 7
		again.Clusters[0].Health = new(health)
		again.Clusters[0].Health.Interval = time.Hour
		if err := p.Update(&again); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(time.Now()).Clusters["upstream"]; s.Endpoints[1].Health != Unhealthy {
			t.Errorf("after a change: %+v", s.Endpoints)
		}
	}
}

func TestProbes(t *testing.T) {
	quiet(t)
	var h asked
	here, _ := upstreamAt(t, &h)
	gone := closedAddress(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // connects, but answers nothing
	for _, row := range []struct {
		health  config.Health
		address string
		want    string // part of the error; empty: none
	}{
		{config.Health{Type: "tcp"}, here, ""},
		{config.Health{Type: "tcp"}, gone, "refused"},
		{config.Health{Type: "http", Path: "/healthz"}, here, ""},
		{config.Health{Type: "http", Path: "/healthz"}, gone, "refused"},
		{config.Health{Type: "http", Path: "/healthz"}, silent.Addr().String(), "no answer within"},
		{config.Health{Type: "grpc", Service: "a.B"}, here, ""},
		{config.Health{Type: "grpc", Service: "a.C"}, here, "not serving"},
		{config.Health{Type: "grpc"}, here, "not serving"},
		{config.Health{Type: "grpc"}, silent.Addr().String(), "no answer within"},
	} {
		row.health.Timeout = 2 * time.Second
		if row.address == silent.Addr().String() {
			row.health.Timeout = 50 * time.Millisecond
		}
		c := newChecker(&config.Cluster{Health: &row.health}, nil)
		err := c.check(t.Context(), row.address)
		if (err != nil) != (row.want != "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v at %s: %v, want %q", row.health, row.address, err, row.want)
		}
	}
}
