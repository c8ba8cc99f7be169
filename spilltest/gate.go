package spilltest

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// most is how many calls fill a gate. The call after them is rejected.
const most = 10_000

// TestGate tests a gate. open returns a new one each time, which rejects a call before
// 10,000 have been admitted at one instant and not settled; a gate with larger limits is
// tested with small ones. A gate that learns from outcomes has learned before it is returned.
func TestGate(t *testing.T, open func(t *testing.T) spillway.Gate) {
	for _, clause := range []struct {
		name string
		test func(t *testing.T, open func(t *testing.T) spillway.Gate)
	}{
		{"rejections are typed", testRejections},
		{"a ticket counts once", testTickets},
		{"any outcome ends a call", testOutcomes},
		{"a suspended ticket counts once", testSuspended},
		{"any call and any time", testAnyCall},
		{"no allocations", testAllocations},
		{"concurrent use", testConcurrentGate},
	} {
		t.Run(clause.name, func(t *testing.T) { clause.test(t, open) })
	}
}

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	call  = spillway.Call{Key: "spilltest", Customer: "spilltest"}
)

// fill admits calls at one instant until the gate rejects one.
func fill(t *testing.T, g spillway.Gate) (admitted []spillway.Ticket, rejection error) {
	t.Helper()
	for range most {
		ticket, err := g.Admit(start, call)
		if err != nil {
			if ticket != (spillway.Ticket{}) {
				t.Errorf("a rejection has the ticket %+v, must be the zero Ticket", ticket)
			}
			return admitted, err
		}
		admitted = append(admitted, ticket)
	}
	t.Fatalf("the gate admits %d calls at one instant: open one that rejects", most)
	return nil, nil
}

// byChance is why a clause about the number of calls is skipped.
const byChance = "the gate decides by chance or by outcomes, not by the calls that it has admitted"

// isFull reports whether the gate rejects all calls, other than one that rejects some.
func isFull(g spillway.Gate) bool {
	for range 100 {
		if ticket, err := g.Admit(start, call); err == nil {
			ticket.Settle(start, spillway.OutcomeNotStarted)
			return false
		}
	}
	return true
}

func testRejections(t *testing.T, open func(t *testing.T) spillway.Gate) {
	_, err := fill(t, open(t))
	e, ok := errors.AsType[*spillway.RejectedError](err)
	switch {
	case !ok || !errors.Is(err, spillway.ErrRejected):
		t.Errorf("the rejection is %#v, must be a RejectedError", err)
	case e.Policy == "" || e.Reason == spillway.ReasonNone:
		t.Errorf("the rejection has the policy %q and the reason %v, must have both", e.Policy, e.Reason)
	case e.Unit == "" || !(e.Level >= 0) || !(e.Limit >= 0):
		t.Errorf("the rejection has the level %v of %v %q, must have a level and its unit", e.Level, e.Limit, e.Unit)
	case e.Unmeasured && (e.Level != 0 || e.Limit == 0):
		t.Errorf("the rejection is Unmeasured with the level %v of %v %q, must have a limit and no level", e.Level, e.Limit, e.Unit)
	case e.RetryAfter < 0:
		t.Errorf("the rejection has RetryAfter %v", e.RetryAfter)
	}
}

// testTickets settles one ticket several times, which makes space for one call at most.
func testTickets(t *testing.T, open func(t *testing.T) spillway.Gate) {
	for o := spillway.OutcomeServed; int(o) < spillway.Outcomes; o++ {
		g := open(t)
		admitted, _ := fill(t, g)
		if len(admitted) == 0 || !isFull(g) {
			t.Skip(byChance)
		}
		for range 3 {
			admitted[0].Settle(start, o)
		}
		if again, _ := fill(t, g); len(again) > 1 {
			t.Errorf("a ticket that is settled three times as %v makes space for %d calls", o, len(again))
		}
	}
}

// testOutcomes settles all calls of a full gate with one outcome, which makes space for one at least. A gate
// that is not free again after served calls counts arrivals, as a rate limit does, and one that is not
// after calls that were not started decides by outcomes.
func testOutcomes(t *testing.T, open func(t *testing.T) spillway.Gate) {
	if !freed(t, open, spillway.OutcomeServed) || !freed(t, open, spillway.OutcomeNotStarted) {
		t.Skip("the gate does not decide by the calls that are in flight")
	}
	for o := spillway.OutcomeServed; int(o) < spillway.Outcomes; o++ {
		if !freed(t, open, o) {
			t.Errorf("after all calls are settled as %v, the gate still admits none", o)
		}
	}
}

// freed reports whether a full gate admits a call after all calls have ended with an outcome.
func freed(t *testing.T, open func(t *testing.T) spillway.Gate, o spillway.Outcome) bool {
	t.Helper()
	g := open(t)
	admitted, _ := fill(t, g)
	for _, ticket := range admitted {
		ticket.Settle(start, o)
	}
	again, _ := fill(t, g)
	return len(again) > 0
}

// testSuspended suspends a call that ends, while another one goes on.
func testSuspended(t *testing.T, open func(t *testing.T) spillway.Gate) {
	full, g := open(t), open(t)
	admitted, _ := fill(t, full)
	if len(admitted) < 2 || !isFull(full) {
		t.Skip(byChance)
	}
	ticket, _ := g.Admit(start, call)
	other, err := g.Admit(start, call)
	if err != nil {
		t.Fatalf("a gate rejects the second of %d calls: %v", len(admitted), err)
	}
	ticket.Suspend(start)
	ticket.Suspend(start)
	ticket.Resume(start)
	ticket.Settle(start, spillway.OutcomeServed)
	ticket.Resume(start)
	ticket.Suspend(start)
	again, _ := fill(t, g)
	if n, want := len(again), len(admitted)-1; n > want || n < want-1 {
		t.Errorf("while one call goes on, and after one that ended while it was suspended, %d calls fill the gate, must be %d or one less", n, want)
	}
	other.Settle(start, spillway.OutcomeServed)
}

func testAnyCall(t *testing.T, open func(t *testing.T) spillway.Gate) {
	g := open(t)
	calls := []spillway.Call{
		{},
		{Criticality: math.MinInt8, Kind: math.MaxUint8, Attempt: math.MinInt16},
		{Criticality: math.MaxInt8, Attempt: math.MaxInt16, Deadline: start.Add(-time.Hour), LongPoll: true},
		{Key: string(make([]byte, 1<<16)), Customer: "\xff\x00", Deadline: start.Add(math.MaxInt64)},
	}
	times := []time.Time{start, start.Add(-time.Hour), start.Add(time.Hour), {}, start.Add(math.MaxInt64), start}
	for _, c := range calls {
		for i, now := range times {
			for o := spillway.Outcome(0); int(o) <= spillway.Outcomes; o++ {
				if ticket, err := g.Admit(now, c); err == nil {
					ticket.Settle(times[len(times)-1-i], o)
				} else if !errors.Is(err, spillway.ErrRejected) {
					t.Errorf("Admit(%v, %+v): %v, must be a rejection", now, c, err)
				}
			}
		}
	}
}

func testAllocations(t *testing.T, open func(t *testing.T) spillway.Gate) {
	now := start
	once := func(g spillway.Gate, wait time.Duration) func() {
		return func() {
			now = now.Add(wait)
			if ticket, err := g.Admit(now, call); err == nil {
				ticket.Settle(now, spillway.OutcomeServed)
			}
		}
	}
	admits, full := open(t), open(t)
	_, _ = fill(t, full)
	for name, f := range map[string]func(){"admits": once(admits, time.Minute), "rejects": once(full, 0)} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("a gate that %s allocates %v times for each call", name, n)
		}
	}
}

func testConcurrentGate(t *testing.T, open func(t *testing.T) spillway.Gate) {
	g := open(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 200 {
				now := start.Add(time.Duration(i*j) * time.Millisecond)
				if ticket, err := g.Admit(now, call); err == nil {
					ticket.Suspend(now)
					ticket.Settle(now, spillway.Outcome(1+j%(spillway.Outcomes-1)))
				}
			}
		})
	}
	all.Wait()
}
