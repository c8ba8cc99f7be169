package throttle_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A crowd makes tasks of so many calls at once. A task whose call is rejected here abandons the calls already
// sent, as with errgroup.
type crowd struct {
	t        *testing.T
	throttle *throttle.Throttle
	now      time.Time
	calls    int              // of a task
	answer   spillway.Outcome // of a task that was sent whole
	level    func() spillway.Level
}

func newCrowd(t *testing.T, calls int) *crowd {
	t.Helper()
	r, err := throttle.New(throttle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	return &crowd{t, r, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), calls, spillway.OutcomeServed, func() spillway.Level {
		next = next%spillway.Levels + 1
		return spillway.Level(next)
	}}
}

// run makes 20 tasks per second for so many, and returns how many of their calls were sent and how many tasks were sent whole.
func (c *crowd) run(seconds int) (sent, whole int) {
	for range 20 * seconds {
		c.now = c.now.Add(time.Second / 20)
		call := spillway.Call{Criticality: spillway.Critical, Level: c.level()}
		var tickets []spillway.Ticket
		for range c.calls {
			if ticket, err := c.throttle.Admit(c.now, call); err == nil {
				tickets = append(tickets, ticket)
			}
		}
		o := spillway.OutcomeAbandoned
		if sent += len(tickets); len(tickets) == c.calls {
			o = c.answer
			whole++
		}
		for i := range tickets {
			tickets[i].Settle(c.now.Add(5*time.Millisecond), o)
		}
	}
	return sent, whole
}

// TestTasksAtOnceRecover: a backend that was away is back. Tasks whose calls are made at once are
// sent again within some seconds, with levels and without.
func TestTasksAtOnceRecover(t *testing.T) {
	for _, calls := range []int{1, 2, 5, 20, 100} {
		for _, levels := range []bool{true, false} {
			c := newCrowd(t, calls)
			if !levels {
				c.level = func() spillway.Level { return 0 }
			}
			c.run(5)
			c.answer = spillway.OutcomeTimedOut
			c.run(3)
			if sent, _ := c.run(7); sent > 8*calls {
				t.Errorf("%d calls at once, levels %v: %d calls were sent to a dead backend in 7 s, want a task per second", calls, levels, sent)
			}
			c.answer = spillway.OutcomeServed
			c.run(10)
			if _, whole := c.run(10); whole < 190 {
				t.Errorf("%d calls at once, levels %v: from 10 s after the outage %d of 200 tasks are sent whole: %+v", calls, levels, whole, c.throttle.Stats(c.now)[spillway.Critical.Index()])
			}
		}
	}
}

// TestAbandonedProbesCostLittle: a dead backend whose callers give up before their deadlines gets one call in a hundred, and a probe per second.
func TestAbandonedProbesCostLittle(t *testing.T) {
	for _, perSecond := range []int{100, 1000, 10_000} {
		c := newCrowd(t, 1)
		c.answer = spillway.OutcomeTimedOut
		c.run(5)
		sent := 0
		for range 20 * perSecond {
			c.now = c.now.Add(time.Second / time.Duration(perSecond))
			if ticket, err := c.throttle.Admit(c.now, spillway.Call{Criticality: spillway.Critical}); err == nil {
				sent++
				ticket.Settle(c.now, spillway.OutcomeAbandoned)
			}
		}
		if most := 21 * max(1, perSecond/100); sent < 19 || sent > most {
			t.Errorf("%d calls per second: %d are sent in 20 s, want at most %d", perSecond, sent, most)
		}
	}
}
