package throttle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// overloaded makes a thousand calls per second to a backend that accepts 250 of them, so that 500 may be sent, and passes the calls of
// the last 20 s to count.
func overloaded(t *testing.T, next func() spillway.Call, count func(c spillway.Call, sent bool)) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	th, err := New(Config{Rand: r.Float64})
	if err != nil {
		t.Fatal(err)
	}
	now, tokens := time.Unix(1e9, 0), 0.
	for i := range 40_000 {
		now = now.Add(time.Millisecond)
		tokens = min(tokens+0.25, 5)
		c := next()
		ticket, err := th.Admit(now, c)
		if i >= 20_000 {
			count(c, err == nil)
		}
		switch {
		case err != nil:
		case tokens >= 1:
			tokens--
			ticket.Settle(now, spillway.OutcomeServed)
		default:
			ticket.Settle(now, spillway.OutcomeOverloaded)
		}
	}
}

// A share says how many of some calls were sent.
type share struct{ calls, sent float64 }

func (s *share) add(sent bool) {
	s.calls++
	if sent {
		s.sent++
	}
}

// What is not sent are calls of tasks that have made no progress, and of these those with the lowest levels. As many are sent as if random
// decided.
func TestTasksGoInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all, begun, high, low share
	overloaded(t, func() spillway.Call {
		c := spillway.Call{Level: spillway.Level(1 + r.IntN(spillway.Levels))}
		if r.IntN(10) < 3 {
			c.Progress = spillway.Progress(1 + r.IntN(9))
		}
		return c
	}, func(c spillway.Call, sent bool) {
		all.add(sent)
		switch { // half of all calls are rejected, which is five sevenths of those without progress: levels up to 91
		case c.Progress > 0:
			begun.add(sent)
		case c.Level > 112:
			high.add(sent)
		case c.Level <= 64:
			low.add(sent)
		}
	})
	for name, row := range map[string]struct {
		share
		least, most float64
	}{"all": {all, 0.47, 0.53}, "tasks with progress": {begun, 0.99, 1}, "high levels": {high, 0.97, 1}, "low levels": {low, 0, 0.02}} {
		if got := row.sent / row.calls; got < row.least || got > row.most {
			t.Errorf("%s: %.3f of %v calls were sent, want %v to %v", name, got, row.calls, row.least, row.most)
		}
	}
}

// Where all calls are of one task, or of tasks that have a level among others without one, nobody is rejected more often than the limit asks for.
func TestOrderStarvesNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, levels := range map[string][]spillway.Level{"one low level": {1}, "one high level": {128}, "no level": {0}, "some without": {0, 1, 128}} {
		var all, without share
		overloaded(t, func() spillway.Call { return spillway.Call{Level: levels[r.IntN(len(levels))]} }, func(c spillway.Call, sent bool) {
			all.add(sent)
			if c.Level == 0 {
				without.add(sent)
			}
		})
		if got := all.sent / all.calls; got < 0.47 || got > 0.53 {
			t.Errorf("%s: %.3f of the calls were sent, want half", name, got)
		}
		if got := without.sent / without.calls; got < 0.45 || got > 0.55 {
			t.Errorf("%s: %.3f of the calls without a level were sent, want half", name, got)
		}
	}
}

func TestOrderAllocatesNothing(t *testing.T) {
	var o order
	c := spillway.Call{Level: 9}
	if n := testing.AllocsPerRun(1000, func() {
		c.Progress++
		o.place(&c, 0.5)
		o.learn()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
