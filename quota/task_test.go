package quota

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// A customer asks for twice its rate, in tasks of five calls in turn that end with the first rejection. Nearly as many tasks are done as
// the rate is enough for. If calls were rejected in the order of arrival, 0.78 of them would be.
func TestTasksStayWhole(t *testing.T) {
	const rate, calls, length = 100., 5, 40 * time.Second
	q := must(t, Config{Allocator: fixed{Rate: rate}})
	r := rand.New(rand.NewPCG(1, 2))
	type task struct {
		next time.Duration // when it makes a call
		call spillway.Call
	}
	var open []*task
	done, arrival := 0, time.Duration(0)
	for now := time.Duration(0); now < length; now += ms {
		for ; arrival <= now; arrival += time.Duration(r.ExpFloat64() * calls / (2 * rate) * float64(time.Second)) {
			open = append(open, &task{now, spillway.Call{Customer: "a", Level: spillway.Level(1 + r.IntN(spillway.Levels))}})
		}
		left := open[:0]
		for _, x := range open {
			if x.next > now {
				left = append(left, x)
				continue
			}
			if _, err := q.Admit(t0.Add(now), x.call); err != nil {
				continue
			}
			x.call.Progress++
			x.next = now + 20*ms
			if x.call.Progress < calls {
				left = append(left, x)
			} else {
				done++
			}
		}
		open = left
	}
	share := float64(done) * calls / (rate * length.Seconds())
	t.Logf("%.3f of the possible tasks", share)
	if share < 0.95 {
		t.Errorf("%.3f of the possible tasks are done, want 0.95", share)
	}
}

// Within a class, more progress goes first, then the higher level. The lowest call of a class goes before all of the class below, and a call
// without a level is the highest of its class. The level does not count for a customer none of whose tasks made progress in the last 10 s.
func TestOrderWithinAClass(t *testing.T) {
	for _, row := range []struct {
		class    spillway.Criticality
		level    spillway.Level
		progress spillway.Progress
		most     float64 // of the burst that is used when it is still admitted
	}{
		{spillway.CriticalPlus, 1, 1, 1}, {spillway.CriticalPlus, 0, 0, 1}, {spillway.CriticalPlus, 128, 0, 1}, {spillway.CriticalPlus, 64, 0, 0.9375},
		{spillway.CriticalPlus, 1, 0, 1 - 127./1024}, {spillway.Critical, 1, 9, 0.75}, {spillway.Critical, 128, 0, 0.75}, {spillway.Critical, 1, 0, 0.75 - 127./1024},
		{spillway.SheddablePlus, 1, 1, 0.5},
	} {
		for _, tasks := range []bool{true, false} {
			most := row.most
			if !tasks {
				most = float64(row.class.Index()+1) / spillway.Criticalities
			}
			for _, above := range []time.Duration{-1, 0} { // admitted just below, and rejected there
				q := must(t, Config{Allocator: fixed{Rate: 1000}, Cost: -1})
				at := t0.Add(tasksFor)
				if begun := (spillway.Call{Customer: "a", Progress: 1}); tasks {
					_, _ = q.Admit(t0.Add(1), begun)
				} else {
					_, _ = q.Admit(t0, begun)
				}
				q.ChargeCustomer(at, "a", 1000*most)
				_, err := q.Admit(at.Add(-above), spillway.Call{Customer: "a", Criticality: row.class, Level: row.level, Progress: row.progress})
				if rejected := err != nil; rejected != (above == 0) {
					t.Errorf("%v, level %d, progress %d, tasks %v, at %v of the burst and %v: %v", row.class, row.level, row.progress, tasks, most, above, err)
				}
			}
		}
	}
}
