package shed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// A slowKind is a server with a slow path.
type slowKind struct {
	kind

	processors int
	slow       []phase // the handler of a slow request
	takes      float64 // seconds of what is short
	has        float64 // how much of that there is in a second
}

var slowKinds = map[string]slowKind{
	"24 in flight": {limitedTo24, 1, []phase{{sleep: time.Second}}, 1, 24},
	"computing":    {computing, 4, timeSlices(30), 0.3, 4},
	// The limit is unknown at first, and is measured again every ten seconds. A quick request
	// waits in the pool behind slow ones.
	"blocking": {blocking, 1, []phase{{pool: 500 * ms}}, 0.5, 8},
}

// timeSlices computes for n time slices. After each slice other goroutines run.
func timeSlices(n int) (p []phase) {
	for range n {
		p = append(p, phase{cpu: 10 * ms})
	}
	return p
}

// rate is the capacity for slow requests, as a share of that for others.
func (k *slowKind) rate() float64 { return k.has / k.takes / k.capacity }

// server is a server with clients that wait for two seconds.
func (k *slowKind) server(t *testing.T) *server { return k.seeded(t, *seed) }

func (k *slowKind) seeded(t *testing.T, seed uint64) *server {
	t.Helper()
	s := k.kind.server(t, k.processors, seed)
	s.deadline, s.preempts = 2*time.Second, true
	return s
}

// A quick client gets what it asks for, although callers of a slow path in its class ask for
// three times what there is, with one key for all requests and with two.
func TestQuickBesideSlow(t *testing.T) {
	least := map[string]float64{"24 in flight": 0.95, "computing": 0.95, "blocking": 0.15}
	for name, k := range slowKinds {
		for _, n := range []int{1, 2, 20} {
			for _, key := range []string{"", "slow"} {
				t.Run(fmt.Sprint(name, "/", n, key), func(t *testing.T) {
					s := k.server(t)
					quick := &group{callers: 1, rate: 0.02}
					slow := &group{callers: n, rate: 3 * k.rate() / float64(n), key: key, handler: func() []phase { return k.slow }}
					s.compete(k.capacity, 20*time.Second, slow, quick)
					used := float64(slow.served) / 20 * k.takes / k.has
					t.Logf("quick %.4f of %d, slow %.4f, which use %.3f", quick.share(), quick.offered, slow.share(), used)
					if quick.share() < least[name] {
						t.Errorf("%.4f of the quick requests served", quick.share())
					}
					if used < 0.7 {
						t.Errorf("the slow requests use %.3f", used)
					}
				})
			}
		}
	}
}

// Callers of a slow path who all ask for the same get the same, and nothing is lost.
func TestEqualSlowCallers(t *testing.T) {
	for name, k := range slowKinds {
		t.Run(name, func(t *testing.T) {
			s := k.server(t)
			s.handler = k.slow
			a, b := &group{callers: 10, rate: 0.15 * k.rate()}, &group{callers: 10, rate: 0.15 * k.rate()}
			s.compete(k.capacity, 20*time.Second, a, b)
			used := float64(a.served+b.served) / 20 * k.takes / k.has
			t.Logf("%d and %d, in all %.3f", a.served, b.served, used)
			if used < 0.75 {
				t.Errorf("%.3f of the capacity", used)
			}
			if float64(a.served) > 1.3*float64(b.served) || float64(b.served) > 1.3*float64(a.served) {
				t.Errorf("%d and %d served", a.served, b.served)
			}
		})
	}
}

// One caller asks for ten times the capacity with quick requests. Twenty others ask for half of
// it with slow ones: they use more time for each request, and less in all.
func TestSlowBesideGreedy(t *testing.T) {
	least := map[string]float64{"24 in flight": 0.95, "computing": 0.85, "blocking": 0.8}
	for name, k := range slowKinds {
		t.Run(name, func(t *testing.T) {
			s := k.server(t)
			greedy := &group{callers: 1, rate: 10 * float64(k.processors)}
			slow := &group{callers: 20, rate: 0.5 / 20 * k.rate(), handler: func() []phase { return k.slow }}
			s.compete(k.capacity, 20*time.Second, greedy, slow)
			t.Logf("slow %.4f of %d, greedy %.4f", slow.share(), slow.offered, greedy.share())
			if slow.share() < least[name] {
				t.Errorf("%.4f of the slow requests served", slow.share())
			}
		})
	}
}

// One caller asks for ten times the capacity with slow requests, and twenty others for 60 % of it
// with quick ones.
func TestGreedySlowCaller(t *testing.T) {
	least := map[string]float64{"24 in flight": 0.9, "computing": 0.55, "blocking": 0.2}
	for name, k := range slowKinds {
		t.Run(name, func(t *testing.T) {
			s := k.server(t)
			quick := &group{callers: 20, rate: 0.03 * float64(k.processors)}
			greedy := &group{callers: 1, rate: 10 * k.rate(), handler: func() []phase { return k.slow }}
			s.compete(k.capacity, 20*time.Second, greedy, quick)
			used := 0.6*quick.share() + float64(greedy.served)/20*k.takes/k.has
			t.Logf("quick %.4f of %d, greedy %.4f, in all %.3f", quick.share(), quick.offered, greedy.share(), used)
			if quick.share() < least[name] {
				t.Errorf("%.4f of the quick requests served", quick.share())
			}
		})
	}
}

// A caller that mixes one slow request with ten quick ones counts as what it uses in all.
func TestMixingCaller(t *testing.T) {
	least := map[string]float64{"24 in flight": 0.95, "computing": 0.95, "blocking": 0.9}
	for name, k := range slowKinds {
		t.Run(name, func(t *testing.T) {
			served, offered := 0, 0
			for i := range uint64(6) {
				s := k.seeded(t, *seed+i)
				n := 0
				quick := &group{callers: 5, rate: 0.02}
				mixing := &group{callers: 1, rate: 30 * k.rate(), handler: func() []phase {
					if n++; n%11 == 0 {
						return k.slow
					}
					return s.handler
				}}
				s.compete(k.capacity, 20*time.Second, mixing, quick)
				served, offered = served+quick.served, offered+quick.offered
			}
			share := float64(served) / float64(offered)
			t.Logf("quick %.4f of %d", share, offered)
			if share < least[name] {
				t.Errorf("%.4f of the quick requests served", share)
			}
		})
	}
}

// A client with a new name in each slow request gets no more than eight callers.
func TestChangingNamesOfSlow(t *testing.T) {
	least := map[string]float64{"24 in flight": 0.95, "computing": 0.9, "blocking": 0.4}
	for name, k := range slowKinds {
		t.Run(name, func(t *testing.T) {
			s := k.server(t)
			quick := &group{callers: 5, rate: 0.02}
			slow := &group{callers: 1, rate: 3 * k.rate(), names: func() uint64 { return s.rand.Uint64() }, handler: func() []phase { return k.slow }}
			s.compete(k.capacity, 20*time.Second, slow, quick)
			t.Logf("quick %.4f of %d, slow %.4f", quick.share(), quick.offered, slow.share())
			if quick.share() < least[name] {
				t.Errorf("%.4f of the quick requests served", quick.share())
			}
		})
	}
}

// A caller with streams that idle, or that have been open for long, is charged for its work only.
func TestIdleStreamsCostNothing(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, suspended := range []bool{true, false} {
		t.Run(fmt.Sprint("suspended ", suspended), func(t *testing.T) {
			l := limiter(t, concurrency.Config{Fixed: true, MaxInFlight: 24})
			b := &saturated{s: must(t, shed.Config{Limit: l, Rand: func() float64 { return 0.5 }}), now: t0}
			b.overload(3 * time.Second) // so that callers are counted
			var streams [8]spillway.Ticket
			for i := range streams {
				d := b.ask()
				if streams[i] = d.Ticket; d.Verdict != shed.Run {
					t.Fatalf("stream %d: %+v", i, d)
				}
				if suspended {
					streams[i].Suspend(b.now)
				}
				b.overload(200 * ms)
			}
			b.overload(8 * time.Second)
			served := 0
			for range 100 {
				b.overload(10 * ms)
				if d := b.ask(); d.Verdict == shed.Run {
					served++
					d.Ticket.Settle(b.now, spillway.OutcomeServed)
				}
			}
			for i := range streams {
				if suspended {
					streams[i].Resume(b.now)
				}
				streams[i].Settle(b.now, spillway.OutcomeServed)
			}
			if served < 95 {
				t.Errorf("%d of 100 quick requests of a caller with %d streams served", served, len(streams))
			}
		})
	}
}

// saturated is a server whose requests take 20 ms. Four callers ask for ten times its capacity.
type saturated struct {
	s      *shed.Shedder
	now    time.Time
	n      uint64
	flight []served
}

type served struct {
	until  time.Time
	ticket spillway.Ticket
}

func (b *saturated) arrive(flow uint64) shed.Decision {
	w := &shed.Waiter{Flow: flow}
	d := b.s.Arrive(b.now, &spillway.Call{}, &idle, w)
	if d.Verdict == shed.Wait {
		b.s.Withdraw(w)
	}
	return d
}

// ask has a fifth caller ask when there is a free place.
func (b *saturated) ask() shed.Decision {
	b.end()
	return b.arrive(1000)
}

// end ends the oldest request.
func (b *saturated) end() {
	b.flight[0].ticket.Settle(b.now, spillway.OutcomeServed)
	b.flight = b.flight[1:]
}

func (b *saturated) overload(length time.Duration) {
	for until := b.now.Add(length); b.now.Before(until); b.now = b.now.Add(100 * time.Microsecond) {
		b.n++
		if d := b.arrive(10 + b.n%4); d.Verdict == shed.Run {
			b.flight = append(b.flight, served{b.now.Add(20 * ms), d.Ticket})
		}
		for len(b.flight) > 0 && !b.flight[0].until.After(b.now) {
			b.end()
		}
	}
}
