package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const critical = 2 // the index of the default class

// backend is Routes and the time of the last call.
type backend struct {
	*Routes
	now   time.Time
	every time.Duration // calls are made
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	th, err := NewRoutes(Config{Rand: random.Float64})
	if err != nil {
		t.Fatal(err)
	}
	return &backend{th, noon, time.Millisecond}
}

// call makes a call of a route, and reports whether it was sent.
func (b *backend) call(route string, o spillway.Outcome) bool { return b.callFor("", route, o) }

func (b *backend) callFor(customer, route string, o spillway.Outcome) bool {
	b.now = b.now.Add(b.every)
	of := Route{Name: route}
	ticket, err := b.Admit(b.now, spillway.Call{Customer: customer}, of)
	if err != nil {
		return false
	}
	b.Settle(b.now, b.now, &ticket, of, o)
	return true
}

// TestRoutesAreApart: a route that always fails is throttled, and no other one is.
func TestRoutesAreApart(t *testing.T) {
	b := newBackend(t)
	bad, good := 0, 0
	for i := range 10_000 {
		if i%10 > 0 {
			if b.call("bad", spillway.OutcomeOverloaded) {
				bad++
			}
		} else if b.call("good", spillway.OutcomeServed) {
			good++
		}
	}
	if good != 1000 || bad > 500 {
		t.Errorf("of 1000 good calls %d were sent, of 9000 bad ones %d", good, bad)
	}
	s := b.Stats(b.now)[critical]
	if s.RejectedTotal != uint64(9000-bad) || s.Probability < 0.5 || s.Limit > 500 {
		t.Errorf("%+v, %d were rejected", s, 9000-bad)
	}
}

// TestNamesOfStrangers: 40 calls per second to a prefix that answers 503, with names that others
// choose, and 10 calls per second to four healthy paths, from the first moment of a process. At
// least 98 of 99 honest calls are sent. The names may come once each, or again and again.
func TestNamesOfStrangers(t *testing.T) {
	for _, names := range []int{1, 10, 64, 200, 300, 1 << 30} {
		for seed := range uint64(20) {
			b := newBackend(t)
			b.every = 20 * time.Millisecond
			r := rand.New(rand.NewPCG(seed, 9))
			honest, served, strangers := 0, 0, 0
			for i := range 495 * 4 {
				if i%5 > 0 {
					if b.call(fmt.Sprint("GET /shard/", r.IntN(names)), spillway.OutcomeOverloaded) {
						strangers++
					}
					continue
				}
				honest++
				if b.call(fmt.Sprint("GET /healthy", r.IntN(4)), spillway.OutcomeServed) {
					served++
				}
			}
			if served < honest*99/100 {
				t.Errorf("%d names, seed %d: %d of %d honest calls were sent", names, seed, served, honest)
			}
			if strangers > 320 {
				t.Errorf("%d names, seed %d: %d calls of strangers were sent", names, seed, strangers)
			}
		}
	}
}

// TestDeadShard: one of four shards fails, after all names were served. The names of the others,
// and other routes, are called as before: also where there are more names than places.
func TestDeadShard(t *testing.T) {
	for _, names := range []int{40, 200, 2000} {
		b := newBackend(t)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 3 * names {
			b.call(fmt.Sprint("GET /users/", i%names), spillway.OutcomeServed)
			b.call("GET /other", spillway.OutcomeServed)
		}
		calls, sent := 0, 0
		for range 20_000 {
			name := r.IntN(names)
			if name%4 == 0 {
				b.call(fmt.Sprint("GET /users/", name), spillway.OutcomeOverloaded)
				continue
			}
			calls += 2
			if b.call(fmt.Sprint("GET /users/", name), spillway.OutcomeServed) {
				sent++
			}
			if b.call("GET /other", spillway.OutcomeServed) {
				sent++
			}
		}
		if sent < calls*99/100 {
			t.Errorf("%d names: %d of %d calls were sent", names, sent, calls)
		}
	}
}

// TestMostRoutesFail: where most of the routes that were served fail, routes of few calls are
// limited too; and some seconds after the backend is back, nothing is.
func TestMostRoutesFail(t *testing.T) {
	for _, names := range []int{1, 5, 50, 250, 5000} {
		b := newBackend(t)
		b.every = 2 * time.Millisecond
		at := 0
		run := func(calls int, o spillway.Outcome) (sent int) {
			for range calls {
				at++
				if b.call(fmt.Sprint("GET /users/", at%names), o) {
					sent++
				}
			}
			return sent
		}
		run(2*names+1000, spillway.OutcomeServed)
		if sent := run(10_000, spillway.OutcomeOverloaded); sent > 1200 {
			t.Errorf("%d names: %d of 10,000 calls are sent to a dead backend", names, sent)
		}
		run(4000, spillway.OutcomeServed)
		if sent := run(1000, spillway.OutcomeServed); sent < 990 {
			t.Errorf("%d names: %d of 1,000 calls are sent 8 s after it is back", names, sent)
		}
	}
}

// TestNothingWasEverServed: a backend that fails from the first call on is limited whatever the
// names, and nothing is when it is back.
func TestNothingWasEverServed(t *testing.T) {
	b := newBackend(t)
	sent := 0
	for i := range 5000 {
		if b.call(fmt.Sprint("route ", i), spillway.OutcomeOverloaded) {
			sent++
		}
	}
	if sent > 20 {
		t.Errorf("%d of 5000 calls were sent", sent)
	}
	for i := range 4000 {
		b.call(fmt.Sprint("route ", i), spillway.OutcomeServed)
	}
	for i := range 100 {
		if !b.call(fmt.Sprint("new ", i), spillway.OutcomeServed) {
			t.Fatal("a call was rejected 4 s after the backend is back")
		}
	}
}

// TestRoutesAreBounded: what was counted outlives routes that are replaced, and no way to
// name routes makes memory grow.
func TestRoutesAreBounded(t *testing.T) {
	b := newBackend(t)
	rejected := uint64(0)
	for i := range 3 * MaxRoutes {
		b.call(fmt.Sprint("route ", i), spillway.OutcomeServed)
		for range 200 {
			if !b.call(fmt.Sprint("route ", i), spillway.OutcomeOverloaded) {
				rejected++
			}
			b.call("good", spillway.OutcomeServed)
		}
		if i%50 == 0 {
			b.now = b.now.Add(time.Minute)
		}
	}
	if n := len(b.routes.load().order); n > MaxRoutes {
		t.Errorf("%d routes are kept, want at most %d", n, MaxRoutes)
	}
	if total := b.Stats(b.now)[critical].RejectedTotal; total != rejected || rejected == 0 {
		t.Errorf("%d rejections are counted, there were %d", total, rejected)
	}
}

// TestIdleNamesLimitNothing: a route that failed and is called no more does not make other calls
// look for names for good.
func TestIdleNamesLimitNothing(t *testing.T) {
	b := newBackend(t)
	b.call("bad", spillway.OutcomeServed)
	for range 100 {
		b.call("bad", spillway.OutcomeOverloaded)
		b.call("never served", spillway.OutcomeOverloaded)
		b.callFor("customer", "good", spillway.OutcomeOverQuota)
	}
	if b.limited.Load() == 0 {
		t.Fatal("the test shows nothing")
	}
	for range 100 {
		b.now = b.now.Add(time.Second)
		b.call("good", spillway.OutcomeServed)
	}
	if n := b.limited.Load(); n != 0 {
		t.Errorf("%d classes limit something", n)
	}
}

// TestQuotaOfOneCustomer: a customer that is over its quota is throttled, and no other one is.
func TestQuotaOfOneCustomer(t *testing.T) {
	b := newBackend(t)
	b.every = 10 * time.Millisecond
	over, good := 0, 0
	for range 401 {
		if b.callFor("over", "GET /", spillway.OutcomeOverQuota) {
			over++
		}
		if b.callFor("good", "GET /", spillway.OutcomeServed) {
			good++
		}
	}
	if over > 30 || good != 401 {
		t.Errorf("%d of 401 calls over quota were sent, and %d of 401 others", over, good)
	}
	b.every = time.Second / 2
	for range 10 {
		b.callFor("over", "GET /", spillway.OutcomeServed)
	}
	for range 20 {
		if !b.callFor("over", "GET /", spillway.OutcomeServed) {
			t.Fatal("a call is rejected 5 s after the customer is within its quota")
		}
	}
}

// TestQuotaOfNoCustomer: where customers are not told apart, no call is throttled for a quota. One customer
// that floods a route would take the calls of all others with it.
func TestQuotaOfNoCustomer(t *testing.T) {
	b := newBackend(t)
	b.every = 10 * time.Millisecond
	all, mixed, other := 0, 0, 0
	for i := range 1000 {
		if b.call("GET /all", spillway.OutcomeOverQuota) {
			all++
		}
		o := spillway.OutcomeOverQuota
		if i%20 == 0 {
			o = spillway.OutcomeServed
		}
		if b.call("GET /mixed", o) {
			mixed++
		}
		if b.call("GET /other", spillway.OutcomeServed) {
			other++
		}
	}
	if all != 1000 || mixed != 1000 || other != 1000 {
		t.Errorf("%d, %d and %d of 1000 calls were sent", all, mixed, other)
	}
}

// TestCustomersAreBounded: who finds no place among the customers is not throttled, nor is anybody
// else.
func TestCustomersAreBounded(t *testing.T) {
	b := newBackend(t)
	for i := range 10_000 {
		b.callFor(fmt.Sprint("stranger ", i), "GET /", spillway.OutcomeOverQuota)
		if !b.callFor("good", "GET /", spillway.OutcomeServed) {
			t.Fatal("a call of a customer within its quota was rejected")
		}
	}
	if n := len(b.customers.load().order); n > MaxRoutes {
		t.Errorf("%d customers are kept", n)
	}
}

// TestAbandonedCalls: clients that leave teach nothing.
func TestAbandonedCalls(t *testing.T) {
	b := newBackend(t)
	for range 50 {
		b.call("route", spillway.OutcomeServed)
	}
	for range 300 {
		for _, o := range []spillway.Outcome{spillway.OutcomeAbandoned, spillway.OutcomeNotStarted} {
			if !b.call("route", o) {
				t.Fatalf("rejected after outcome %v", o)
			}
		}
	}
}

// TestShortWaits: four callers give up after 8 ms for each honest one of a handler that takes 20 ms.
// Once the latency is known, their waits explain themselves: honest calls are sent.
func TestShortWaits(t *testing.T) {
	b := newBackend(t)
	of, honest := Route{Name: "GET /"}, 0
	for i := range 1000 {
		sent := b.now.Add(time.Duration(i) * 25 * time.Millisecond)
		for range 4 {
			if ticket, err := b.Admit(sent, spillway.Call{}, of); err == nil {
				b.Settle(sent, sent.Add(8*time.Millisecond), &ticket, of, spillway.OutcomeTimedOut)
			}
		}
		if ticket, err := b.Admit(sent, spillway.Call{}, of); err == nil {
			honest++
			b.Settle(sent, sent.Add(20*time.Millisecond), &ticket, of, spillway.OutcomeServed)
		}
	}
	if honest < 990 {
		t.Errorf("%d of 1000 honest calls were sent", honest)
	}
}

func TestRoutesUpdate(t *testing.T) {
	b := newBackend(t)
	for range 100 {
		b.call("bad", spillway.OutcomeOverloaded)
	}
	if err := b.Update(Config{K: 0.5}); err == nil {
		t.Error("K of 0.5 was taken")
	}
	if err := b.Update(Config{K: 1.5}); err != nil {
		t.Error(err)
	}
	if k := b.config.Load().K; k != 1.5 {
		t.Errorf("new routes have K %v", k)
	}
}

func TestRoutesAllocateNothing(t *testing.T) {
	b := newBackend(t)
	for _, route := range []string{"bad", "good"} {
		b.call(route, spillway.OutcomeServed)
	}
	for name, o := range map[string]spillway.Outcome{"overloaded": spillway.OutcomeOverloaded, "served": spillway.OutcomeServed, "left": spillway.OutcomeAbandoned} {
		for _, route := range []string{"bad", "good", "unknown"} {
			if route == "unknown" && o == spillway.OutcomeServed {
				continue // makes a place
			}
			if n := testing.AllocsPerRun(1000, func() { b.callFor("customer", route, o) }); n != 0 {
				t.Errorf("%s, %s: %v allocations", route, name, n)
			}
		}
	}
}

// After the clock stepped back, what was served before explains no timeout. Otherwise a backend that hangs would be sent every call until
// the clock is back where it was.
func TestTimeoutsAfterTheClockSteppedBack(t *testing.T) {
	b := newBackend(t)
	for range 100 {
		b.call("route", spillway.OutcomeServed)
	}
	b.now = b.now.Add(-time.Hour)
	const calls, timeout = 120, 15 // a call per second
	var tickets [calls]spillway.Ticket
	of, sent := Route{Name: "route"}, 0
	for i := range calls {
		b.now = b.now.Add(time.Second)
		if i >= timeout {
			b.Settle(b.now.Add(-timeout*time.Second), b.now, &tickets[i-timeout], of, spillway.OutcomeTimedOut)
		}
		var err error
		if tickets[i], err = b.Admit(b.now, spillway.Call{}, of); err == nil {
			sent++
		}
	}
	if s := b.Stats(b.now)[critical]; s.State == StateClosed {
		t.Errorf("%d of %d calls were sent to a backend that hangs: %+v", sent, calls, s)
	}
}
