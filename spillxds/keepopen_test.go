package spillxds_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillxds"
)

// TestKeptOpenCalls is the circuit breaking case of the interop tests of gRPC through
// [spillxds.Cluster.Egress], with the throttle: calls that are kept open until their
// deadline of 20 s, 100 per second, to two clusters with limits of 500 and 1000. The
// first limit is raised to 800. Each cluster has as many in flight as its limit allows,
// for minutes.
func TestKeptOpenCalls(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		unary, empty := must(c.Cluster(key("unary"))), must(c.Cluster(key("empty")))
		st := <-s.streams
		awaitNames(st, 2)
		st.send(answer("1", "a", cluster("unary", 500), cluster("empty", 1000)))
		<-st.requests
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for _, to := range []*spillxds.Cluster{unary, empty} {
			client := must(egress.New(to.Egress(egress.Config{})))
			calls.Go(func() { keepOpen(ctx, &calls, client) })
		}
		check := func(first, second int) {
			t.Helper()
			for range 20 {
				time.Sleep(time.Second)
				a, b := unary.Limiter().Stats(time.Now()).InFlight, empty.Limiter().Stats(time.Now()).InFlight
				if a < first*99/100 || a > first || b < second*99/100 || b > second {
					t.Fatalf("%d and %d in flight, want %d and %d", a, b, first, second)
				}
			}
		}
		time.Sleep(60 * time.Second)
		check(500, 1000)
		st.send(answer("2", "b", cluster("unary", 800), cluster("empty", 1000)))
		<-st.requests
		time.Sleep(20 * time.Second)
		check(800, 1000)
		time.Sleep(100 * time.Second)
		check(800, 1000)
		cancel()
		calls.Wait()
	})
}

// keepOpen makes 100 calls per second that end at their deadline.
func keepOpen(ctx context.Context, calls *sync.WaitGroup, client *egress.Client) {
	for ctx.Err() == nil {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			_ = client.Do(ctx, spillway.Call{Key: "call"}, func(ctx context.Context, _ *egress.Attempt) error {
				<-ctx.Done()
				return ctx.Err()
			})
		})
		time.Sleep(10 * time.Millisecond)
	}
}

// A control plane that does not answer a request for a cluster may hold its answer back:
// the error says so. One that answers without the cluster does not have it.
func TestSilentControlPlane(t *testing.T) {
	for name, row := range map[string]struct {
		config  spillxds.Config
		answers bool
		hint    bool
	}{
		"silent":              {spillxds.Config{}, false, true},
		"silent, incremental": {spillxds.Config{Incremental: true}, false, false},
		"silent, wildcard":    {spillxds.Config{Wildcard: true}, false, false},
		"answers":             {spillxds.Config{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var told []spillxds.Event
			row.config.Observer = func(e spillxds.Event) { told = append(told, e) }
			played(t, row.config, func(t *testing.T, s *script, c *spillxds.Client) {
				users := must(c.Cluster(key("users")))
				st := <-s.streams
				if row.answers {
					st.send(answer("1", "a", cluster("others", 3)))
				}
				time.Sleep(16 * time.Second)
				synctest.Wait()
				err := ready(users)
				if !errors.Is(err, spillxds.ErrNotFound) || strings.Contains(err.Error(), "Config.Wildcard") != row.hint {
					t.Errorf("error %v, want one with a hint: %t", err, row.hint)
				}
			})
			if n := len(told); n == 0 || (told[n-1].Kind != spillxds.NotFound || strings.Contains(told[n-1].Err.Error(), "Config.Wildcard") != row.hint) {
				t.Errorf("events %+v", told)
			}
		})
	}
}

// What is not supported is rejected by name.
func TestUnsupportedNames(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, _ *script, c *spillxds.Client) {
		for want, key := range map[string]inflight.Key{
			`Key.Cluster is "", must be 1 to`:                      {},
			"xdstp: (gRFC A47)":                                    {Cluster: "xdstp://authority/envoy.config.cluster.v3.Cluster/users"},
			`xx"... (5000 bytes), must be at most 4096 bytes long`: {Cluster: "users", Service: strings.Repeat("x", 5000)},
		} {
			if _, err := c.Cluster(key); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
	})
}
