package throttle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// backend is Routes and the time of the last call.
type backend struct {
	*Routes
	now time.Time
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	th, err := NewRoutes(Config{Rand: random.Float64})
	if err != nil {
		t.Fatal(err)
	}
	return &backend{th, noon}
}

// call makes a call of a route, and reports whether it was sent.
func (b *backend) call(route string, o spillway.Outcome) bool {
	b.now = b.now.Add(time.Millisecond)
	of := Route{Name: route}
	ticket, err := b.Admit(b.now, spillway.Call{}, of)
	if err != nil {
		return false
	}
	b.Settle(b.now, b.now, &ticket, of, o)
	return true
}

// The throttle that routes of few calls share, which has seen the first failures of each route,
// is not reported while it decides on no calls.
func TestFewCallsAreNotReported(t *testing.T) {
	b := newBackend(t)
	for range 100 {
		b.call("route", spillway.OutcomeOverloaded)
	}
	for range 10_000 {
		b.call("route", spillway.OutcomeServed)
	}
	critical := spillway.Critical.Index()
	if s := b.few.Stats(b.now)[critical]; s.State != StateProbing {
		t.Errorf("the test shows nothing: %+v", s)
	}
	if s := b.Stats(b.now)[critical]; s.State != StateClosed || s.Probability != 0 || !math.IsInf(s.Limit, 1) {
		t.Errorf("%+v", s)
	}
	b.call("other", spillway.OutcomeOverloaded)
	if s := b.Stats(b.now)[critical]; s.State == StateClosed {
		t.Errorf("it decides on another route: %+v", s)
	}
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
	s := b.Stats(b.now)[spillway.Critical.Index()]
	if s.RejectedTotal != uint64(9000-bad) || s.Probability < 0.5 || s.Limit > 500 {
		t.Errorf("%+v, %d were rejected", s, 9000-bad)
	}
}

// TestRoutesOfOneCall: where no route comes again, the throttle of the backend decides.
func TestRoutesOfOneCall(t *testing.T) {
	b := newBackend(t)
	sent := 0
	for i := range 5000 {
		if b.call(fmt.Sprint("route ", i), spillway.OutcomeOverloaded) {
			sent++
		}
	}
	if sent > 500 {
		t.Errorf("%d of 5000 calls were sent", sent)
	}
}

// TestRoutesAreBounded: what was counted outlives routes that are replaced, and no way to
// name routes makes memory grow.
func TestRoutesAreBounded(t *testing.T) {
	b := newBackend(t)
	rejected := uint64(0)
	for i := range 200 {
		for range 40 {
			if !b.call(fmt.Sprint("route ", i), spillway.OutcomeOverloaded) {
				rejected++
			}
			b.call("good", spillway.OutcomeServed)
		}
	}
	if n := len(b.all); n != MaxRoutes {
		t.Errorf("%d routes are kept, want %d", n, MaxRoutes)
	}
	total := uint64(0)
	for _, c := range b.Stats(b.now) {
		total += c.RejectedTotal
	}
	if total != rejected || rejected == 0 {
		t.Errorf("%d rejections are counted, there were %d", total, rejected)
	}
}

// TestRoutesAndOutcomes: neither quotas nor clients that leave make a route.
func TestRoutesAndOutcomes(t *testing.T) {
	b := newBackend(t)
	for range 1000 {
		for _, o := range []spillway.Outcome{spillway.OutcomeOverQuota, spillway.OutcomeAbandoned} {
			if !b.call("route", o) {
				t.Fatalf("rejected after outcome %v", o)
			}
		}
	}
	if len(b.all) > 0 {
		t.Error("a route is kept")
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
	if b.config.K != 1.5 {
		t.Errorf("new routes have K %v", b.config.K)
	}
}

func TestRoutesAllocateNothing(t *testing.T) {
	b := newBackend(t)
	for range 100 {
		b.call("bad", spillway.OutcomeOverloaded)
	}
	for _, route := range []string{"bad", "good"} {
		if n := testing.AllocsPerRun(1000, func() { b.call(route, spillway.OutcomeServed) }); n != 0 {
			t.Errorf("%s: %v allocations", route, n)
		}
	}
}

// TestRouteInheritsAdvice: a route that is created by a rejection starts from the ratio that
// the server has reported before, and follows later reports.
func TestRouteInheritsAdvice(t *testing.T) {
	for name, after := range map[string]bool{"before": false, "after": true} {
		r, err := NewRoutes(Config{Rand: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		start, of := time.Unix(1e9, 0), Route{Name: "search"}
		ticket, err := r.Admit(start, spillway.Call{}, of)
		if err != nil {
			t.Fatal(err)
		}
		advise := func() {
			for range 3 {
				r.Advise(start, spillway.Critical, 0.1)
			}
		}
		if !after {
			advise()
		}
		r.Settle(start, start, &ticket, of, spillway.OutcomeOverloaded)
		if after {
			advise()
		}
		if _, err := r.Admit(start.Add(time.Minute), spillway.Call{}, of); err == nil {
			t.Errorf("advice %s the route is known: the next call of the route is admitted", name)
		}
		if _, err := r.Admit(start.Add(AdviceLifetime+time.Minute), spillway.Call{}, of); err != nil {
			t.Errorf("advice %s the route is known: it is not forgotten: %v", name, err)
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
	if s := b.Stats(b.now)[spillway.Critical.Index()]; s.State == StateClosed {
		t.Errorf("%d of %d calls were sent to a backend that hangs: %+v", sent, calls, s)
	}
}
