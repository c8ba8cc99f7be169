package inflight

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// all are the classes, lowest first.
var all = [spillway.Criticalities]spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus, spillway.Critical, spillway.CriticalPlus}

// A load is how many requests each class has arrive while one is served.
type load [spillway.Criticalities]float64

// end is when a request in flight ends.
type end struct {
	at     time.Time
	ticket spillway.Ticket
}

// A trial offers loads to a Limiter, at random times, each request served for 20 ms on
// average.
type trial struct {
	t       testing.TB
	l       *Limiter
	now     time.Time
	random  *rand.Rand
	running ends
}

// ends is a [heap.Interface]: the next end is first.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newTrial(t testing.TB, limit int) *trial {
	t.Helper()
	race.SkipOneGoroutine(t)
	return &trial{t: t, l: mustNew(t, limit), now: t0, random: rand.New(rand.NewPCG(1, 2))}
}

const service = 20 * time.Millisecond

func (x *trial) after(mean time.Duration) time.Time {
	return x.now.Add(time.Duration(x.random.ExpFloat64() * float64(mean)))
}

// run returns which share of the requests of each class was admitted.
func (x *trial) run(offered load, d time.Duration) (admitted load) {
	x.t.Helper()
	sum := 0.0
	for _, n := range offered {
		sum += n
	}
	var arrived load
	for until := x.now.Add(d); ; {
		next := x.after(time.Duration(float64(service) / sum))
		if next.After(until) {
			break
		}
		x.now = next
		x.finish()
		class, u := 0, x.random.Float64()*sum
		for u >= offered[class] && class < len(offered)-1 {
			u -= offered[class]
			class++
		}
		arrived[class]++
		ticket, err := x.l.Admit(x.now, spillway.Call{Criticality: all[class]})
		if err == nil {
			admitted[class]++
			heap.Push(&x.running, end{x.after(service), ticket})
		}
		if s := x.l.Stats(time.Time{}); s.InFlight > s.MaxInFlight {
			x.t.Fatalf("%d in flight of %d", s.InFlight, s.MaxInFlight)
		}
	}
	for i := range admitted {
		admitted[i] /= max(arrived[i], 1)
	}
	return admitted
}

func (x *trial) finish() {
	for len(x.running) > 0 && !x.running[0].at.After(x.now) {
		e := heap.Pop(&x.running).(end)
		e.ticket.Settle(x.now, spillway.OutcomeServed)
	}
}

// measure returns the shares of about so many requests, once the limit is full.
func (x *trial) measure(offered load, requests float64) load {
	x.t.Helper()
	sum := 0.0
	for _, n := range offered {
		sum += n
	}
	x.run(offered, 10*service)
	return x.run(offered, time.Duration(requests/sum*float64(service)))
}

// TestClasses has a limit that is reached: the highest class gets what it would get alone,
// and the lowest gets nothing while the others need all.
func TestClasses(t *testing.T) {
	for _, row := range []struct {
		limit       int
		offered     load
		least, most load // shares admitted, relative to what the class would get alone
	}{
		{24, load{30, 30, 30, 30}, load{0, 0, 0, .985}, load{.002, .005, .05, 1.01}},
		{24, load{90, 12, 12, 6}, load{0, 0, .5, .995}, load{.04, .6, 1, 1.01}},
		{24, load{116, 0, 0, 4}, load{.4, 0, 0, .99}, load{.7, 0, 0, 1.01}},
		{24, load{60, 0, 60, 0}, load{0, 0, .985, 0}, load{.01, 0, 1.01, 0}},
		{24, load{0, 60, 0, 60}, load{0, 0, 0, .985}, load{0, .01, 0, 1.01}},
		{4, load{5, 5, 5, 5}, load{0, 0, 0, .98}, load{.01, .02, .1, 1.02}},
		{1000, load{1250, 1250, 1250, 1250}, load{0, 0, 0, .99}, load{.002, .002, .02, 1.01}},
		{1000, load{100, 100, 100, 100}, load{1, 1, 1, 1}, load{1, 1, 1, 1}}, // not reached
	} {
		t.Run(fmt.Sprint(row.limit, row.offered), func(t *testing.T) {
			got := newTrial(t, row.limit).measure(row.offered, max(40_000, 200*float64(row.limit)))
			t.Logf("admitted %.4f", got)
			for class, share := range got {
				alone := load{}
				alone[class] = row.offered[class]
				if alone[class] == 0 {
					continue
				}
				share /= newTrial(t, row.limit).measure(alone, max(20_000, 50*float64(row.limit)))[class]
				if share < row.least[class] || share > row.most[class] {
					t.Errorf("%v gets %.4f of what it would get alone, want %v to %v", all[class], share, row.least[class], row.most[class])
				}
			}
		})
	}
}

// TestClassesOneAlone: each class gets all places if it is alone.
func TestClassesOneAlone(t *testing.T) {
	for _, limit := range []int{1, 2, 16, 17, 1024} {
		for class := range all {
			l := mustNew(t, limit)
			n := 0
			for range limit + 1 {
				if _, err := l.Admit(t0, spillway.Call{Criticality: all[class]}); err == nil {
					n++
				}
			}
			if n != limit {
				t.Errorf("%v has %d of %d places", all[class], n, limit)
			}
		}
	}
}

// TestClassesBelowTheLimit: where the limit is rarely reached, few calls of any class are
// rejected for the sake of another one.
func TestClassesBelowTheLimit(t *testing.T) {
	for _, limit := range []int{4, 16, 64, 1024} {
		x := newTrial(t, limit)
		n := 0.6 * float64(limit) / 4
		got := x.measure(load{n, n, n, n}, 20_000)
		classless := &trial{t: t, l: mustNew(t, limit), now: t0, random: rand.New(rand.NewPCG(1, 2))}
		classless.l.classes = nil
		without := classless.measure(load{n, n, n, n}, 20_000)
		t.Logf("limit %d: admitted %.4f, without classes %.4f", limit, got, without)
		for class := range got {
			if lost := without[class] - got[class]; lost > 0.1 || limit > 16 && lost > 0.01 {
				t.Errorf("limit %d: %v gets %.4f, without classes %.4f", limit, all[class], got[class], without[class])
			}
		}
	}
}

// TestClassesSeldom: a class that calls once in some seconds finds a place while another one
// offers twice the limit.
func TestClassesSeldom(t *testing.T) {
	for class := range 3 {
		x := newTrial(t, 24)
		offered := load{3: 0.004} // a call in 5 s
		offered[class] = 48
		x.run(offered, 5*time.Second)
		got := x.run(offered, time.Minute)
		t.Logf("beside %v: %.4f", all[class], got)
		if got[3] < 0.95 || got[class] < 0.4 {
			t.Errorf("beside %v: %.4f", all[class], got)
		}
	}
}

// TestClassesRecover: when the load is over, nothing is rejected soon.
func TestClassesRecover(t *testing.T) {
	x := newTrial(t, 16)
	x.run(load{20, 20, 20, 20}, 3*time.Second)
	x.run(load{2, 2, 2, 2}, 3*batch*service/8) // three times is measured how much is offered
	got := x.run(load{2, 2, 2, 2}, time.Second)
	t.Logf("after an overload: admitted %.4f", got)
	if got[0] < 0.9 {
		t.Errorf("after an overload: admitted %.4f", got)
	}
}

// TestClassesAfterPause: a class that has not called for long gets all places that it
// needs within the time of a few services, and keeps them while it calls.
func TestClassesAfterPause(t *testing.T) {
	x := newTrial(t, 64)
	x.run(load{300, 0, 0, 0}, time.Second)
	first := x.run(load{300, 0, 0, 16}, 2*service)
	later := x.run(load{300, 0, 0, 16}, time.Second)
	t.Logf("at first %.3f, later %.3f", first, later)
	if first[3] < 0.5 || later[3] < 0.99 {
		t.Errorf("CRITICAL_PLUS: at first %.3f, later %.3f", first[3], later[3])
	}
	x.run(load{16, 0, 0, 0}, time.Duration(seldom+2*span)) // and it is forgotten
	if n := x.l.classes.reserved(x.now.UnixNano(), 0, 64); n != 0 {
		t.Errorf("%d places are kept", n)
	}
}

// TestClassesOfRegistry: A32 knows no classes.
func TestClassesOfRegistry(t *testing.T) {
	var r Registry
	l, release := r.Share(Key{})
	defer release()
	l.SetMaxInFlight(16)
	for i := range 17 {
		_, err := l.Admit(time.Time{}, spillway.Call{Criticality: all[i%4]})
		if (err == nil) != (i < 16) {
			t.Fatalf("request %d: %v", i, err)
		}
	}
}

// TestClassesConcurrent: whatever happens at once, nothing is in flight afterwards.
func TestClassesConcurrent(t *testing.T) {
	l := mustNew(t, 8)
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			for i := range 5000 {
				now := t0.Add(time.Duration(i) * 10 * time.Millisecond)
				ticket, err := l.Admit(now, spillway.Call{Criticality: all[(g+i)%4]})
				if err == nil {
					ticket.Settle(now, spillway.OutcomeServed)
				}
			}
		})
	}
	running.Wait()
	for i := range l.classes.held {
		if n := l.classes.held[i].Load(); n != 0 || l.Stats(time.Time{}).InFlight != 0 {
			t.Errorf("%v: %d in flight", all[i], n)
		}
	}
}

func TestClassesAllocateNothing(t *testing.T) {
	l := mustNew(t, 2)
	if n := testing.AllocsPerRun(1000, func() {
		for range 3 {
			ticket, _ := l.Admit(t0, spillway.Call{Criticality: spillway.Sheddable})
			ticket.Settle(t0, spillway.OutcomeServed)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A clock that steps back makes no call of a higher class one of the last minute: its places are kept for a minute, not until the clock is
// back where it was.
func TestSeldomClassAfterTheClockSteppedBack(t *testing.T) {
	const limit = 160
	l, back := mustNew(t, limit), t0.Add(-time.Hour)
	ticket, err := l.Admit(t0, spillway.Call{Criticality: spillway.CriticalPlus})
	if err != nil {
		t.Fatal(err)
	}
	ticket.Settle(t0, spillway.OutcomeServed)
	admitted := 0
	for range limit {
		if _, err := l.Admit(back.Add(2*time.Minute), spillway.Call{Criticality: spillway.Sheddable}); err == nil {
			admitted++
		}
	}
	if admitted != limit {
		t.Errorf("two minutes after the clock stepped back by an hour %d of %d places are given to the only class that calls", admitted, limit)
	}
	// And a class that calls now is one of the last minute again.
	l = mustNew(t, limit)
	for _, now := range []time.Time{t0, back} {
		if ticket, err = l.Admit(now, spillway.Call{Criticality: spillway.CriticalPlus}); err != nil {
			t.Fatal(err)
		}
		ticket.Settle(now, spillway.OutcomeServed)
	}
	if n := l.classes.reserved(back.Add(time.Second).UnixNano(), 0, limit); n != limit/seldomShare {
		t.Errorf("%d places are kept for a class that called a second ago, want %d", n, limit/seldomShare)
	}
}
