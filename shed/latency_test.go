package shed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/concurrency"
)

// A slotPool is what an overloaded server waits for: slots that a call holds for 20 ms, or for a
// random time that differs from it by at most spread.
type slotPool struct {
	slots  int
	spread time.Duration
}

func (p slotPool) capacity() float64 { return float64(p.slots) / 0.020 }

// overload returns a server after a steady load of four classes, in which the pool serves
// 8,000 calls. A static limit rejects at once; 0 is the Shedder.
func (p slotPool) overload(t *testing.T, load float64, static int) *server {
	k := kind{pool: p.slots}
	if static > 0 {
		k.limit = concurrency.Config{Fixed: true, Max: static}
	}
	s := k.server(t, 64, *seed)
	s.atOnce = static > 0
	s.deadline = time.Second
	s.vary = func() []phase {
		return []phase{{pool: 20*ms + time.Duration((2*s.rand.Float64()-1)*float64(p.spread))}}
	}
	s.offer(load*p.capacity(), 2*time.Second, allClasses...)
	s.fresh()
	s.offer(load*p.capacity(), time.Duration(8000/p.capacity()*float64(time.Second)), allClasses...)
	s.run(s.now.Add(200 * ms))
	return s
}

// bestStatic returns the least static limit that serves 99.9 % of the most at 1.1 times the capacity,
// where a limit must let requests wait. Three times the slots and more is not tried: p99 is
// three times the duration of a call then.
func (p slotPool) bestStatic(t *testing.T) int {
	limits := []int{p.slots * 5 / 4, p.slots * 3 / 2, p.slots * 2}
	served := make([]int, len(limits))
	for i, limit := range limits {
		served[i] = total(p.overload(t, 1.1, limit).good)
	}
	enough := slices.Max(served) * 999 / 1000
	return limits[slices.IndexFunc(served, func(n int) bool { return n >= enough })]
}

// misordered returns which share of the answers went to a class while requests of a higher one were
// rejected that could have had them.
func (s *server) misordered() float64 {
	left, wrong := total(s.good), 0
	for i := len(s.good) - 1; i >= 0; i-- {
		first := min(left, s.offered[i])
		wrong += max(0, s.good[i]-first)
		left -= first
	}
	return float64(wrong) / float64(total(s.good))
}

// The p99 of the answers and their number, compared with the best static limit, and the order
// of classes. docs/shed.md says why a lower p99 costs the order.
func TestLatencyBehindAPool(t *testing.T) {
	for _, row := range []struct {
		slotPool
		p99        [3]float64 // times that of the static limit, at most, at 2, 5 and 10 times the capacity
		misordered [3]float64 // at most
	}{
		{slotPool{8, 0}, [3]float64{2.6, 2.5, 1.6}, [3]float64{0.05, 0.005, 0.001}},
		{slotPool{8, 2 * ms}, [3]float64{2.5, 2.4, 1.4}, [3]float64{0.05, 0.005, 0.001}},
		{slotPool{64, 0}, [3]float64{3, 3, 2.2}, [3]float64{0.025, 0.02, 0.001}},
		{slotPool{64, 2 * ms}, [3]float64{3, 3.4, 1.6}, [3]float64{0.015, 0.005, 0.001}},
	} {
		limit := row.bestStatic(t)
		for i, load := range []float64{2, 5, 10} {
			s, static := row.overload(t, load, 0), row.overload(t, load, limit)
			p99 := float64(s.p99()) / float64(static.p99())
			goodput, wrong := float64(total(s.good))/float64(total(static.good)), s.misordered()
			t.Logf("%d slots ± %v, %vx: p99 %v, static limit %d %v (%.2f); answers %.3f; misordered %.4f, static %.2f; served %v of %v",
				row.slots, row.spread, load, s.p99().Round(ms/10), limit, static.p99().Round(ms/10), p99, goodput,
				wrong, static.misordered(), s.good, s.offered)
			if p99 > row.p99[i] || goodput < 0.985 || wrong > row.misordered[i] {
				t.Errorf("%d slots ± %v, %vx: p99 %.2f times that of the best static limit, %.3f of its answers, misordered %.4f",
					row.slots, row.spread, load, p99, goodput, wrong)
			}
		}
	}
}
