package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/thorough"
)

// An arrival is one call at a task.
type arrival struct {
	task  int
	class spillway.Criticality
	name  string // of the customer
}

// poissonCalls returns independent calls of a class, at a rate per second over tasks from first to last.
func poissonCalls(r *rand.Rand, class spillway.Criticality, rate float64, first, last int) func(at time.Duration) []arrival {
	next := r.ExpFloat64() / rate
	return func(at time.Duration) (all []arrival) {
		for ; next <= at.Seconds(); next += r.ExpFloat64() / rate {
			all = append(all, arrival{first + r.IntN(last-first+1), class, "mail"})
		}
		return all
	}
}

// lockstepCalls returns a call at each of 20 tasks at the same time, at a rate per second of all.
func lockstepCalls(rate float64) func(at time.Duration) []arrival {
	next := 0.
	return func(at time.Duration) (all []arrival) {
		for ; next <= at.Seconds(); next += 20 / rate {
			for task := range 20 {
				all = append(all, arrival{task, spillway.Critical, "mail"})
			}
		}
		return all
	}
}

// counts are the calls of each second.
type counts struct{ offered, admitted []float64 }

// runSparse returns the calls of each class.
func runSparse(s *service, end time.Duration, calls func(at time.Duration) []arrival) (by [spillway.Criticalities]counts) {
	for i := range by {
		by[i] = counts{make([]float64, int(end/time.Second)), make([]float64, int(end/time.Second))}
	}
	for ; s.at < end; s.at += 50 * ms {
		for _, n := range s.nodes {
			if s.at >= n.next || s.at-n.last >= n.fleet.cfg.Interval/4 && n.isUrgent() {
				s.sync(n)
			}
		}
		second := int(s.at / time.Second)
		for _, x := range calls(s.at) {
			c := &by[x.class.Index()]
			c.offered[second]++
			if _, err := s.nodes[x.task].gate.Admit(s.now(), spillway.Call{Customer: x.name, Criticality: x.class}); err == nil {
				c.admitted[second]++
			}
		}
	}
	return by
}

// sumOf adds up the seconds from a to b.
func sumOf(x []float64, a, b int) (sum float64) {
	for _, v := range x[a:b] {
		sum += v
	}
	return sum
}

// busiest returns the most of any so many seconds, from a second on.
func busiest(x []float64, from, seconds int) (most float64) {
	for i := from; i+seconds <= len(x); i++ {
		most = max(most, sumOf(x, i, i+seconds))
	}
	return most
}

// TestSparseCalls: limits of few calls over 20 tasks, most of which have had no call for longer than a report
// remembers. What is admitted is the limit, or what is offered below it.
func TestSparseCalls(t *testing.T) {
	for _, row := range []struct {
		limit, times float64
		lockstep     bool
		least        float64 // at 1.0 demand is above the limit at times, and a bucket of one call would admit about .6
	}{
		{0.1, 0.5, false, 0.97},
		{0.1, 3, false, 0.97},
		{0.1, 10, true, 0.97},
		{1, 0.5, false, 0.97},
		{1, 1, false, 0.85},
		{1, 1.5, false, 0.95},
		{1, 3, false, 0.97},
		{1, 10, false, 0.97},
		{1, 1, true, 0.97},
		{1, 3, true, 0.97},
		{1, 10, true, 0.97},
		{10, 0.5, false, 0.97},
		{10, 1, false, 0.9},
		{10, 1.5, false, 0.95},
		{10, 3, false, 0.97},
		{10, 10, false, 0.97},
		{10, 3, true, 0.97},
		{10, 10, true, 0.97},
	} {
		if testing.Short() && row.limit < 10 || !thorough.Enabled() && row.limit < 1 && row.times > 1 {
			continue // the lower the limit, the longer
		}
		t.Run(fmt.Sprint(row.limit, "x", row.times, row.lockstep), func(t *testing.T) {
			s := newService(t, 20, mail(row.limit), nil)
			demand := row.limit * row.times
			calls := poissonCalls(s.rand, spillway.Critical, demand, 0, 19)
			if row.lockstep {
				calls = lockstepCalls(demand)
			}
			seconds := int(300 + 400/row.limit)
			c := runSparse(s, time.Duration(seconds)*time.Second, calls)[spillway.Critical.Index()]
			from := seconds / 3
			burst := s.nodes[0].fleet.cfg.depth(row.limit, 20)
			due := min(sumOf(c.offered, from, seconds), float64(row.limit*float64(seconds-from)))
			least, most := row.least*due, due+burst
			if row.lockstep { // all 20 or none are admitted
				least, most = least-20, most+20
			}
			within(t, "of what is due", sumOf(c.admitted, from, seconds)/due, least/due, most/due)
			buckets := float64(s.nodes[0].fleet.cfg.LeastDepth * 20)
			within(t, "from the start, of the limit and full buckets",
				sumOf(c.admitted, 0, seconds)/(float64(row.limit*float64(seconds))+buckets+burst), 0, 1)
			// The time of 20 calls at the limit has these, a burst, and a call in each task at once.
			window := max(1, int(20/row.limit))
			within(t, "busiest window, of the limit and bursts", busiest(c.admitted, from, window)/(40+burst), 0, 0.8)
		})
	}
}

// TestSparseClasses: the noise of rare CRITICAL calls is not taken for demand, which would reject SHEDDABLE below the limit.
// Above it, CRITICAL comes first.
func TestSparseClasses(t *testing.T) {
	for _, row := range []struct{ critical, sheddable, least, most float64 }{
		{0.35, 0.35, 0.6, 1},  // a bucket of three calls has a quarter, less than a call, for SHEDDABLE
		{0.5, 2.5, 0.1, 0.25}, // half of the limit is left, for five times as much
	} {
		s := newService(t, 20, mail(1), nil)
		a := poissonCalls(s.rand, spillway.Critical, row.critical, 0, 19)
		b := poissonCalls(s.rand, spillway.Sheddable, row.sheddable, 0, 19)
		by := runSparse(s, 1000*time.Second, func(at time.Duration) []arrival { return append(a(at), b(at)...) })
		critical, sheddable := by[spillway.Critical.Index()], by[spillway.Sheddable.Index()]
		within(t, "CRITICAL", sumOf(critical.admitted, 200, 1000)/sumOf(critical.offered, 200, 1000), 0.93, 1)
		within(t, "SHEDDABLE", sumOf(sheddable.admitted, 200, 1000)/sumOf(sheddable.offered, 200, 1000), row.least, row.most)
	}
}

// TestSparseCallsMove: rare calls move from one half of the tasks to the other. What the first half is still expected to
// need is not lost for longer than a minute.
func TestSparseCallsMove(t *testing.T) {
	s := newService(t, 20, mail(1), nil)
	before, after := poissonCalls(s.rand, spillway.Critical, 3, 0, 9), poissonCalls(s.rand, spillway.Critical, 3, 10, 19)
	c := runSparse(s, 900*time.Second, func(at time.Duration) []arrival {
		a, b := before(at), after(at)
		if at < 300*time.Second {
			return a
		}
		return b
	})[spillway.Critical.Index()]
	within(t, "the minute after the move", sumOf(c.admitted, 300, 360)/60, 0.85, 1+(30.+13)/60) // full buckets
	within(t, "after that", sumOf(c.admitted, 360, 900)/540, 0.93, 1.02)
}
