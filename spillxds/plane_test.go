package spillxds_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillxds"
)

// forms runs test in both forms of the protocol.
func forms(t *testing.T, test func(t *testing.T, c spillxds.Config)) {
	t.Run("state of the world", func(t *testing.T) { test(t, spillxds.Config{}) })
	t.Run("incremental", func(t *testing.T) { test(t, spillxds.Config{Incremental: true}) })
	t.Run("wildcard", func(t *testing.T) { test(t, spillxds.Config{Wildcard: true}) })
	t.Run("incremental wildcard", func(t *testing.T) { test(t, spillxds.Config{Incremental: true, Wildcard: true}) })
}

func TestLimitsFollowThePlane(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		p := newPlane(t)
		p.push(cluster("users", 12), cluster("cart", 34))
		client := p.client(c)
		start := time.Now()
		users, cart := must(client.Cluster(key("users"))), must(client.Cluster(key("cart")))
		if got := users.Limiter().Stats(time.Now()).MaxInFlight; got != inflight.DefaultMaxInFlight && got != 12 {
			t.Errorf("limit %d before anything was said", got)
		}
		limitOf(t, users, 12)
		limitOf(t, cart, 34)
		t.Logf("in force after %v", time.Since(start))
		for _, limit := range []uint32{5, 0, 500, 1 << 31} {
			start := time.Now()
			p.push(cluster("users", limit), cluster("cart", 34))
			limitOf(t, users, int(min(limit, 1<<31-1)))
			t.Logf("pushed %d: in force after %v", limit, time.Since(start))
		}
		limitOf(t, cart, 34)
		if s := client.Stats(time.Now()); s.RejectedTotal != 0 || s.StreamsTotal != 1 || !s.Connected {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestBadValueKeepsTheLastOneAndDoesNotStorm(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		if c.Wildcard {
			t.Skip("a wildcard changes what is asked for, not how a bad value is answered")
		}
		t.Parallel() // it watches for a second
		p := newPlane(t)
		p.push(cluster("users", 12), cluster("cart", 34))
		client := p.client(c)
		users, cart := must(client.Cluster(key("users"))), must(client.Cluster(key("cart")))
		limitOf(t, users, 12)
		limitOf(t, cart, 34)
		p.push(bad("users"), cluster("cart", 35))
		limitOf(t, cart, 35) // the good resource of a bad response
		eventually(t, "a NACK", func() bool { return len(p.rejections()) > 0 })
		until := time.After(1200 * time.Millisecond)
		<-until
		nacks := p.rejections()
		first := 0
		for _, at := range nacks[1:] {
			if at.Sub(nacks[0]) < time.Second {
				first++
			}
		}
		t.Logf("%d repeats within a second", first)
		if first > 5 {
			t.Errorf("%d repeats of a NACK in a second", first)
		}
		if got := users.Limiter().Stats(time.Now()).MaxInFlight; got != 12 {
			t.Errorf("limit %d after a bad value, want 12", got)
		}
		p.mu.Lock()
		detail := p.details[0]
		p.mu.Unlock()
		if !strings.Contains(detail, `"users"`) || strings.Contains(detail, "cart") {
			t.Errorf("the NACK says %q", detail)
		}
		p.push(cluster("users", 13), cluster("cart", 35))
		limitOf(t, users, 13)
	})
}

func TestOutageKeepsLimitsAndReportsItsDrops(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		p := newPlane(t)
		p.push(cluster("users", 2))
		client := p.client(c)
		users := must(client.Cluster(key("users")))
		limitOf(t, users, 2)
		eventually(t, "a stream of reports", func() bool { return p.loads.streams() == 1 })
		l := users.Limiter()
		l.TryAcquire()
		l.TryAcquire()
		before := uint64(0)
		reject := func(n int) {
			for range n {
				if l.TryAcquire() {
					t.Fatal("admitted above the limit")
				}
				before++
			}
		}
		reject(100)
		eventually(t, "the first drops are reported", func() bool { return p.loads.users().dropped == before })
		p.kill()
		eventually(t, "the outage is noticed", func() bool { s := client.Stats(time.Now()); return !s.Connected && s.Interval == 0 })
		reject(1234)
		if got := l.Stats(time.Now()).MaxInFlight; got != 2 {
			t.Errorf("limit %d during the outage", got)
		}
		p.push(cluster("users", 3))
		p.start(p.addr)
		limitOf(t, users, 3)
		eventually(t, "the drops of the outage are reported", func() bool { return p.loads.users().dropped >= before })
		if got := p.loads.users().dropped; got != before {
			t.Errorf("%d drops reported, want %d", got, before)
		}
	})
}

func TestRestartWithNothingIsNoDeletion(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		p := newPlane(t)
		p.push(cluster("users", 2))
		c.Deleted, c.DoesNotExist = spillxds.DefaultLimit, 30*time.Millisecond
		client := p.client(c)
		users := must(client.Cluster(key("users")))
		limitOf(t, users, 2)
		p.kill()
		p.cache.ClearSnapshot(nodeID)
		p.start(p.addr)
		eventually(t, "the second stream", func() bool { s := client.Stats(time.Now()); return s.Connected && s.StreamsTotal > 1 })
		<-time.After(100 * time.Millisecond)
		if got := users.Limiter().Stats(time.Now()).MaxInFlight; got != 2 {
			t.Errorf("limit %d after a restart of a control plane that knows nothing yet", got)
		}
		p.push(cluster("users", 9))
		limitOf(t, users, 9)
	})
}

func TestDeletion(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		for policy, want := range map[spillxds.Deleted]int{spillxds.KeepLimit: 2, spillxds.DefaultLimit: inflight.DefaultMaxInFlight} {
			p := newPlane(t)
			p.push(cluster("users", 2), cluster("cart", 3))
			removed := make(chan spillxds.Event, 10)
			c.Deleted = policy
			c.Observer = func(e spillxds.Event) {
				if e.Kind == spillxds.Removed {
					removed <- e
				}
			}
			client := p.client(c)
			users, cart := must(client.Cluster(key("users"))), must(client.Cluster(key("cart")))
			limitOf(t, users, 2)
			limitOf(t, cart, 3)
			p.push(cluster("cart", 3))
			e := <-removed
			if got := users.Limiter().Stats(time.Now()).MaxInFlight; got != want || e.Cluster != "users" || int(e.Limits.MaxRequests) != want {
				t.Errorf("policy %d: limit %d after %+v, want %d", policy, got, e, want)
			}
			if err := users.Ready(t.Context()); !errors.Is(err, spillxds.ErrNotFound) {
				t.Errorf("Ready of a deleted cluster: %v", err)
			}
			p.push(cluster("cart", 3), cluster("users", 8))
			limitOf(t, users, 8)
			if err := users.Ready(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestClusterThatDoesNotExist(t *testing.T) {
	for _, incremental := range []bool{false, true} {
		p := newPlane(t)
		p.push(cluster("users", 2))
		client := p.client(spillxds.Config{DoesNotExist: 50 * time.Millisecond, Incremental: incremental})
		users := must(client.Cluster(key("users")))
		if err := users.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		nobody := must(client.Cluster(key("nobody")))
		if err := nobody.Ready(t.Context()); !errors.Is(err, spillxds.ErrNotFound) {
			t.Fatalf("Ready: %v", err)
		}
		p.push(cluster("users", 2), cluster("nobody", 4))
		limitOf(t, nobody, 4)
	}
}

func TestClustersComeAndGo(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		p := newPlane(t)
		p.push(cluster("a", 1), cluster("b", 2), cluster("c", 3))
		client := p.client(c)
		a := must(client.Cluster(key("a")))
		limitOf(t, a, 1)
		b, again := must(client.Cluster(key("b"))), must(client.Cluster(key("b")))
		limitOf(t, b, 2)
		if b.Limiter() != again.Limiter() {
			t.Error("two limiters for one key")
		}
		b.Close()
		b.Close()
		p.push(cluster("a", 1), cluster("b", 22), cluster("c", 3))
		limitOf(t, again, 22)
		a.Close()
		again.Close()
		if n := len(client.Stats(time.Now()).Clusters); n != 0 {
			t.Errorf("%d clusters held by nobody", n)
		}
		limitOf(t, must(client.Cluster(key("c"))), 3)
		limitOf(t, must(client.Cluster(key("a"))), 1)
	})
}

// TestClustersComeAndGoAtRandom takes clusters and gives them up while the stream
// runs, and expects the limits of the clusters that are held in the end.
func TestClustersComeAndGoAtRandom(t *testing.T) {
	forms(t, func(t *testing.T, c spillxds.Config) {
		names := []string{"a", "b", "c"}
		p := newPlane(t)
		p.push(cluster("a", 1), cluster("b", 2), cluster("c", 3))
		c.Reports = spillxds.Never
		client := p.client(c)
		var users sync.WaitGroup
		for g := range 4 {
			users.Go(func() {
				random := rand.New(rand.NewPCG(uint64(g), 1))
				for range 300 {
					held := must(client.Cluster(key(names[random.IntN(3)])))
					if random.IntN(4) == 0 {
						_ = held.Ready(t.Context())
					}
					held.Close()
				}
			})
		}
		users.Wait()
		for i, name := range names {
			held := must(client.Cluster(key(name)))
			limitOf(t, held, i+1)
			if err := held.Ready(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestKeyWithService(t *testing.T) {
	p := newPlane(t)
	c := cluster("users", 5)
	c.EdsClusterConfig.ServiceName = "users-blue"
	p.push(c)
	client := p.client(spillxds.Config{})
	anywhere := must(client.Cluster(key("users")))
	blue := must(client.Cluster(inflight.Key{Cluster: "users", Service: "users-blue"}))
	green := must(client.Cluster(inflight.Key{Cluster: "users", Service: "users-green"}))
	limitOf(t, anywhere, 5)
	limitOf(t, blue, 5)
	if got := green.Limiter().Stats(time.Now()).MaxInFlight; got != inflight.DefaultMaxInFlight {
		t.Errorf("another service has the limit %d", got)
	}
	c = cluster("users", 6)
	c.EdsClusterConfig.ServiceName = "users-green"
	p.push(c)
	limitOf(t, green, 6)
	limitOf(t, anywhere, 6)
	if got := blue.Limiter().Stats(time.Now()).MaxInFlight; got != 5 {
		t.Errorf("the service that was left has the limit %d", got)
	}
}

func TestCountIsKeptWhenTheLimitFalls(t *testing.T) {
	p := newPlane(t)
	p.push(cluster("users", 105))
	users := must(p.client(spillxds.Config{}).Cluster(key("users")))
	limitOf(t, users, 105)
	l := users.Limiter()
	for range 105 {
		l.TryAcquire()
	}
	p.push(cluster("users", 100))
	limitOf(t, users, 100)
	for i := range 6 {
		if l.TryAcquire() {
			t.Fatalf("admitted with %d in flight of 100", 105-i)
		}
		l.Release()
	}
	if !l.TryAcquire() {
		t.Error("rejected with 99 in flight of 100")
	}
}

func TestTooManyClusters(t *testing.T) {
	p := newPlane(t)
	client := p.client(spillxds.Config{MaxClusters: 3, Reports: spillxds.Always})
	var held []*spillxds.Cluster
	for i := range 3 {
		held = append(held, must(client.Cluster(key(fmt.Sprint(i)))))
	}
	if _, err := client.Cluster(key("3")); err == nil || !strings.Contains(err.Error(), "MaxClusters") {
		t.Errorf("a fourth cluster: %v", err)
	}
	held[1].Close()
	if _, err := client.Cluster(key("3")); err != nil {
		t.Errorf("after one has gone: %v", err)
	}
	for _, name := range []string{"", strings.Repeat("x", 5000)} {
		if _, err := client.Cluster(key(name)); err == nil {
			t.Errorf("a cluster with a name of %d bytes", len(name))
		}
	}
}

func TestRetriesAreInForceToo(t *testing.T) {
	p := newPlane(t)
	c := cluster("users", 5)
	c.CircuitBreakers.Thresholds[0].MaxRetries = wrapperspb.UInt32(2)
	p.push(c)
	client := p.client(spillxds.Config{})
	users := must(client.Cluster(key("users")))
	limitOf(t, users, 5)
	if got := client.Stats(time.Now()).Clusters[key("users")]; got.Limits.Retries != 2 || !got.Known {
		t.Errorf("%+v", got)
	}
}
