package shed

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/pace"
)

// lasting returns a queue with an overload behind its limit for longer than a second.
func lasting() *queue {
	q := &queue{full: standing{lasts: time.Second + 1}}
	q.cascade.ranks[0] = decided(0.5)
	return q
}

// A queue is short while an overload stands behind a limit whose queue was found. Its length is that
// of the rejected share, and at most what is served before the request leaves.
func TestShortQueueAtItsBounds(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*queue, *pace.Pace)
		want   int
	}{
		"twice the capacity":         {func(*queue, *pace.Pace) {}, 4},
		"ten times the capacity":     {func(q *queue, _ *pace.Pace) { q.cascade.ranks[0] = decided(0.9) }, shallow},
		"a quarter more than it":     {func(q *queue, _ *pace.Pace) { q.cascade.ranks[0] = decided(cut) }, 12},
		"hardly more than it":        {func(q *queue, _ *pace.Pace) { q.cascade.ranks[0] = decided(0.02) }, deepest - 1},
		"no queue was found":         {func(_ *queue, p *pace.Pace) { p.Found = false }, 0},
		"a burst":                    {func(q *queue, _ *pace.Pace) { q.full.lasts = time.Second }, 0},
		"clients leave":              {func(q *queue, _ *pace.Pace) { q.leaving = true }, 0},
		"three are served in a wait": {func(_ *queue, p *pace.Pace) { p.Throughput = 3.9 }, 3},
		"one is":                     {func(_ *queue, p *pace.Pace) { p.Throughput = 1 }, shallow},
	} {
		q, p := lasting(), &pace.Pace{Found: true, Throughput: 400}
		row.change(q, p)
		q.short = 7 // as of the request before
		if q.overload(p, time.Second); q.short != row.want {
			t.Errorf("%s: %d may wait, want %d", name, q.short, row.want)
		}
	}
	q := lasting()
	if q.overload(&pace.Pace{Found: true, Throughput: 6}, time.Second/2); q.short != 3 {
		t.Errorf("6 are served in a second, of which a request waits for half: %d may wait, want 3", q.short)
	}
}

// A queue is short up to the marginal rank, and for those above it while they can replace a waiter.
func TestRanksOfAShortQueue(t *testing.T) {
	q := &queue{marginal: 2}
	if q.isShort(0) {
		t.Error("a queue is short without an overload")
	}
	q.short = shallow
	for group, want := range map[int]bool{1: true, 2: true, 3: false} {
		if got := q.isShort(group); got != want {
			t.Errorf("without waiters: group %d: %v", group, got)
		}
	}
	q.add(&Waiter{order: order(3 << 8)})
	if q.isShort(3) {
		t.Error("a waiter above the marginal group cannot be replaced")
	}
	q.add(&Waiter{order: order(2 << 8)})
	if !q.isShort(3) {
		t.Error("a waiter of the marginal group can be replaced")
	}
}

// A request that would wait for exactly as long as it may is not delayed.
func TestDelaysAtItsBound(t *testing.T) {
	for wait, want := range map[time.Duration]bool{time.Second: false, time.Second + 1: true} {
		if got := delays(&pace.Pace{Saturated: true, Wait: wait}, time.Second); got != want {
			t.Errorf("a wait of %v: %v", wait, got)
		}
	}
}

// The admissions are halved when there are more than twice the memory.
func TestMarginalGroupForgets(t *testing.T) {
	for admitted, want := range map[float64]float64{2*memory - 1: 2*memory - 1, 2 * memory: 2 * memory, 2*memory + 2: memory + 1} {
		var c cascade
		c.admitted[1] = admitted
		if c.marginal(); c.admitted[1] != want {
			t.Errorf("of %v admissions %v are left, want %v", admitted, c.admitted[1], want)
		}
	}
}

// Of two equal limits of a wait the first one counts.
func TestEqualLimitsOfAWait(t *testing.T) {
	a := arrival{patience: time.Second, by: byDeadline}
	if a.atMost(time.Second, byMaxWait); a.by != byDeadline {
		t.Errorf("limited by %s", causes[a.by].setting)
	}
	now := time.Unix(1e9, 0)
	call := &spillway.Call{Deadline: now.Add(400 * time.Millisecond)}
	for parked, want := range map[time.Duration]cause{300 * time.Millisecond: byDeadline, 299 * time.Millisecond: byLatency} {
		if _, by := patience(now, call, &pace.Pace{Found: true, Parked: parked}, time.Second, 1); by != want {
			t.Errorf("parked for %v: limited by %s", parked, causes[by].setting)
		}
	}
}

// The marginal group is the lowest that has, with lower ones, more than a fifth of the last hundred or two
// admissions.
func TestMarginalGroup(t *testing.T) {
	for _, row := range []struct {
		admitted [groups]float64
		want     int
	}{
		{[groups]float64{}, groups - 1},
		{[groups]float64{0: 25, 2: 25, 4: 25, 6: 25}, 0},
		{[groups]float64{0: 2, 2: 8, 4: 40, 6: 50}, 4},
		{[groups]float64{0: 10, 2: 10, 4: 40, 6: 40}, 4},
		{[groups]float64{0: 10, 2: 11, 4: 40, 6: 39}, 2},
		{[groups]float64{6: 99}, 6},
		{[groups]float64{4: 20, 5: 80}, 5},
	} {
		c := cascade{admitted: row.admitted}
		if got := c.marginal(); got != row.want {
			t.Errorf("%v: group %d, want %d", row.admitted, got, row.want)
		}
	}
	var c cascade
	for i := range 1400 {
		group := 0
		if i >= 1000 {
			group = 6
		}
		c.admitted[group]++
		c.marginal()
	}
	if got := c.marginal(); got != 6 {
		t.Errorf("after 400 admissions of group 6 the marginal one is %d", got)
	}
}

// paced is a limit with a given pace.
type paced struct {
	Limit

	pace pace.Pace
}

func (l *paced) Ask(time.Time, string) pace.Pace              { return l.pace }
func (*paced) Enter(time.Time, spillway.Call) spillway.Ticket { return spillway.Ticket{} }
func (*paced) Working() (working, parked int)                 { return 9, 0 }

// A request whose deadline does not allow it to wait behind the limit gets the next place in service,
// though others may have places of the limit; without a deadline it takes one of those.
func TestShortDeadlinesWaitForService(t *testing.T) {
	for name, row := range map[string]struct {
		pace pace.Pace
		left time.Duration // to the deadline; 0: there is none
		want Verdict
	}{
		"long deadline":        {pace.Pace{Saturated: true, Wait: 10 * time.Millisecond}, time.Second, Run},
		"short deadline":       {pace.Pace{Saturated: true, Wait: 10 * time.Millisecond}, 50 * time.Millisecond, Wait},
		"a place in service":   {pace.Pace{Wait: 10 * time.Millisecond}, 50 * time.Millisecond, Run},
		"nobody waits":         {pace.Pace{Saturated: true}, 50 * time.Millisecond, Run},
		"less than half of it": {pace.Pace{Saturated: true, Wait: 6 * time.Millisecond}, 50 * time.Millisecond, Run},
		"no deadline":          {pace.Pace{Saturated: true, Wait: time.Hour}, 0, Run},
	} {
		row.pace.Free, row.pace.Found, row.pace.Left, row.pace.Latency, row.pace.Throughput, row.pace.Parked = true, true, 5, 0.02, 400, time.Second
		limit := &paced{pace: row.pace}
		s, err := New(Config{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		now, call := time.Unix(1, 0), spillway.Call{}
		if row.left > 0 {
			call.Deadline = now.Add(row.left)
		}
		state := State{Processors: 2}
		if d := s.Arrive(now, &call, &state, &Waiter{}); d.Verdict != row.want {
			t.Errorf("%s: %v, want %v", name, d.Verdict, row.want)
			continue
		}
		if row.want != Wait {
			continue
		}
		if w, _ := s.Next(now, state); w != nil {
			t.Errorf("%s: it ran behind the limit", name)
		}
		limit.pace.Saturated = false
		if w, _ := s.Next(now, state); w == nil {
			t.Errorf("%s: it did not get the place in service", name)
		}
	}
}

// Where a queue was found, an overload that is over is forgotten in a quarter of the time for which
// requests may wait, and 75 ms, however long it was. Elsewhere it counts for up to 10 s.
func TestOverloadsAreForgotten(t *testing.T) {
	for found, want := range map[bool]time.Duration{true: time.Second + 3*burst, false: 5 * time.Second} {
		q := new(queue)
		a := &arrival{patience: time.Second, pace: pace.Pace{Found: found, Free: true, Saturated: true}}
		if q.seeLimit(5*time.Second, a); q.full.lasts != want || !q.limited {
			t.Errorf("found: %v: an overload of 5 s lasts %v, limited %v", found, q.full.lasts, q.limited)
		}
		a.pace.Saturated = false
		if q.seeLimit(7*time.Second, a); q.full.lasts != 0 || q.limited {
			t.Errorf("found: %v: after 2 s it lasts %v, limited %v", found, q.full.lasts, q.limited)
		}
	}
}

// While a fifth of the requests that run are abandoned, the queue is long for half a second in ten, and then for as long as more clients leave
// there.
func TestLongQueueFindsOutWhoLeaves(t *testing.T) {
	for _, row := range []struct {
		abandoned, left float64
		want            time.Duration // in 30 s, in which the queue is long
	}{
		{0.01, 0, 0},
		{cut, 0, 0},
		{0.5, 0, 3 * time.Second / 2},
		{0.5, 0.5, 3 * time.Second / 2},
		{0.5, 0.6, 30 * time.Second},
		{0, noise, 0},
		{0, 2 * noise, 30 * time.Second},
	} {
		q, long := &queue{left: row.left}, time.Duration(0)
		p := pace.Pace{Found: true, Abandoned: row.abandoned}
		for at := time.Hour; at < time.Hour+30*time.Second; at += 10 * time.Millisecond {
			if q.seeLeaving(at, &p); q.leaving {
				long += 10 * time.Millisecond
			}
		}
		if (long - row.want).Abs() > 50*time.Millisecond {
			t.Errorf("%+v: the queue was long for %v", row, long)
		}
	}
}
