package throttle_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/throttle"
)

// A lasting is a backend whose calls last: it says how one ends that is the n-th and is sent at a
// time after the start.
type lasting func(at time.Duration, n int) (takes time.Duration, o spillway.Outcome)

// never is how long a call takes whose ticket is never settled.
const never = time.Hour

// load makes 100 calls per second to a backend for some seconds, and returns how many are sent in
// each of them.
func load(t *testing.T, seconds int, backend lasting) (sent []int) {
	t.Helper()
	race.SkipOneGoroutine(t)
	r, err := throttle.NewRoutes(throttle.Config{Rand: rand.New(rand.NewPCG(1, 9)).Float64})
	if err != nil {
		t.Fatal(err)
	}
	type call struct {
		sent, ends time.Time
		ticket     spillway.Ticket
		outcome    spillway.Outcome
	}
	var pending []*call
	route, n := throttle.Route{Name: "GET /events"}, 0
	sent = make([]int, seconds)
	for at := time.Duration(0); at < time.Duration(seconds)*time.Second; at += 10 * time.Millisecond {
		now := t0.Add(at)
		pending = slices.DeleteFunc(pending, func(c *call) bool {
			if c.ends.After(now) {
				return false
			}
			r.Settle(c.sent, c.ends, &c.ticket, route, c.outcome)
			return true
		})
		ticket, err := r.Admit(now, spillway.Call{}, route)
		if err != nil {
			continue
		}
		n++
		sent[at/time.Second]++
		takes, o := backend(at, n)
		pending = append(pending, &call{now, now.Add(takes), ticket, o})
	}
	return sent
}

func total(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

const (
	down = 5 * time.Second
	back = 10 * time.Second
)

// outage returns a backend that serves calls of 20 ms, is down for five seconds, and after that
// is as the given one.
func outage(then lasting) lasting {
	return func(at time.Duration, n int) (time.Duration, spillway.Outcome) {
		switch {
		case at < down:
			return 20 * time.Millisecond, spillway.OutcomeServed
		case at < back:
			return time.Millisecond, spillway.OutcomeOverloaded
		default:
			return then(at, n)
		}
	}
}

// always returns a backend whose calls all take the same time and end in the same way.
func always(takes time.Duration, o spillway.Outcome) lasting {
	return func(time.Duration, int) (time.Duration, spillway.Outcome) { return takes, o }
}

// every returns a backend whose every n-th call goes to one, and the others to another.
func every(n int, one, other lasting) lasting {
	return func(at time.Duration, call int) (time.Duration, spillway.Outcome) {
		if call%n == 0 {
			return one(at, call)
		}
		return other(at, call)
	}
}

const s = time.Second

// TestCallsThatLast: a backend that is back is found by calls that last for longer than the test.
// Where some calls are still rejected, these are heard of first, and the limit rises slowly.
func TestCallsThatLast(t *testing.T) {
	polls := always(25*s, spillway.OutcomeServed)
	for name, c := range map[string]struct {
		backend lasting
		want    int // calls in 14 s, from six seconds after the outage
	}{
		"served in the end":   {polls, 1300},
		"never settled":       {always(never, spillway.OutcomeServed), 1300},
		"canceled":            {always(4*s, spillway.OutcomeAbandoned), 1300},
		"failed":              {always(6*s, spillway.OutcomeFailed), 1300},
		"one in ten rejected": {every(10, always(time.Millisecond, spillway.OutcomeOverloaded), polls), 70},
	} {
		if sent := load(t, 30, outage(c.backend)); total(sent[16:]) < c.want {
			t.Errorf("%s: %d calls are sent per second, want %d from second 16 on", name, sent, c.want)
		}
	}
}

// TestCallsThatHang: a call that waits is no evidence where calls are rejected late, where they
// time out, or where they leave early. Then there is one probe per second.
func TestCallsThatHang(t *testing.T) {
	soon, late := always(s/2, spillway.OutcomeTimedOut), always(9*s, spillway.OutcomeTimedOut)
	for name, c := range map[string]struct {
		backend lasting
		settles int // seconds until that is known
		more    int // than a probe in each second after that
	}{
		"rejected late":       {always(5*s, spillway.OutcomeOverloaded), 8, 1},
		"time out":            {always(3*s, spillway.OutcomeTimedOut), 6, 1},
		"time out soon":       {soon, 0, 1},
		"time out late":       {late, 12, 1},
		"time out, some soon": {every(4, soon, late), 6, 1},
		"leave soon":          {always(s/2, spillway.OutcomeAbandoned), 0, 1},
		"were not begun":      {always(0, spillway.OutcomeNotStarted), 0, 1},
		"some are rejected":   {every(2, always(time.Millisecond, spillway.OutcomeOverloaded), late), 0, 100}, // of 2,700 calls
	} {
		sent := load(t, 38, outage(c.backend))
		from := 11 + c.settles
		if n := total(sent[from:]); n > 38-from+c.more {
			t.Errorf("%s: %d calls are sent per second, want a probe from second %d on, and %d calls", name, sent, from, c.more)
		}
	}
}

// TestPendingAllocatesNothing: neither sending a call while there is a limit, nor its end.
func TestPendingAllocatesNothing(t *testing.T) {
	th := must(t, throttle.Config{Rand: func() float64 { return 0.99 }})
	now := t0
	for range 100 {
		now = now.Add(10 * time.Millisecond)
		if ticket, err := th.Admit(now, spillway.Call{}); err == nil {
			ticket.Settle(now, spillway.OutcomeOverloaded)
		}
	}
	outcomes := []spillway.Outcome{spillway.OutcomeOverloaded, spillway.OutcomeAbandoned, spillway.OutcomeServed, spillway.OutcomeNotStarted}
	n := testing.AllocsPerRun(2000, func() {
		now = now.Add(700 * time.Millisecond)
		if ticket, err := th.Admit(now, spillway.Call{}); err == nil {
			ticket.Settle(now.Add(600*time.Millisecond), outcomes[now.UnixMilli()/700%int64(len(outcomes))])
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
