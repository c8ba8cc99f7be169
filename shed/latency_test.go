package shed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/thorough"
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
func (p slotPool) overload(t *testing.T, load float64, static int, seed uint64) *server {
	k := kind{pool: p.slots}
	if static > 0 {
		k.limit = concurrency.Config{Fixed: true, MaxInFlight: static}
	}
	s := k.server(t, 64, seed)
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
func (p slotPool) bestStatic(t *testing.T, seeds uint64) int {
	limits := []int{p.slots * 5 / 4, p.slots * 3 / 2, p.slots * 2}
	served := make([]int, len(limits))
	for i, limit := range limits {
		for j := range seeds {
			served[i] += total(p.overload(t, 1.1, limit, *seed+j).good)
		}
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

// share returns which share of the requests of a class was served, up to what the pool can serve
// after all higher classes.
func (s *server) share(class spillway.Criticality) float64 {
	left := total(s.good)
	for i := len(s.good) - 1; i > class.Index(); i-- {
		left -= min(left, s.offered[i])
	}
	return float64(s.good[class.Index()]) / float64(max(1, min(left, s.offered[class.Index()])))
}

// The p99 of the answers and their number, compared with the best static limit, and the order
// of classes. docs/shed.md says what a lower p99 costs the order.
func TestLatencyBehindAPool(t *testing.T) {
	const most, least = 1.4, 0.99
	seeds := thorough.Seeds(1, 3)
	for _, pool := range []slotPool{{8, 0}, {8, 2 * ms}, {64, 0}, {64, 2 * ms}} {
		limit := pool.bestStatic(t, seeds)
		for i := range seeds {
			seed := *seed + i
			for _, load := range []float64{2, 5, 10} {
				s, static := pool.overload(t, load, 0, seed), pool.overload(t, load, limit, seed)
				p99 := float64(s.p99()) / float64(static.p99())
				answers := float64(total(s.good)) / float64(total(static.good))
				plus, critical := s.share(spillway.CriticalPlus), s.share(spillway.Critical)
				t.Logf("%d slots ± %v, %vx, seed %d: p99 %v, static limit %d %v (%.2f); answers %.3f; misordered %.4f, static %.2f; served %v of %v",
					pool.slots, pool.spread, load, seed, s.p99().Round(ms/10), limit, static.p99().Round(ms/10), p99, answers,
					s.misordered(), static.misordered(), s.good, s.offered)
				if p99 > most || answers < least || plus < 0.99 || load == 2 && critical < 0.8 {
					t.Errorf("%d slots ± %v, %vx, seed %d: p99 %.2f times that of the best static limit, %.3f of its answers, CRITICAL_PLUS %.3f, CRITICAL %.3f",
						pool.slots, pool.spread, load, seed, p99, answers, plus, critical)
				}
			}
		}
	}
}

// A route with a timeout of 30 s lets a request wait for as long. In an overload that lasts, no request
// waits for more than some base latencies, whatever its deadline is.
func TestLongDeadlinesInAnOverload(t *testing.T) {
	for _, load := range []float64{2, 5} {
		s := blocking.server(t, 2, *seed)
		s.deadline, s.known = 30*time.Second, true
		s.offer(load*blocking.capacity, 12*time.Second, allClasses...)
		s.fresh()
		s.offer(load*blocking.capacity, 20*time.Second, allClasses...)
		s.run(s.now.Add(time.Second))
		longest := slices.Max(s.latencies)
		t.Logf("%vx: at most %v, served %v of %v", load, longest, s.good, s.offered)
		if longest > 5*20*ms {
			t.Errorf("%vx: a request took %v", load, longest)
		}
		if got := float64(total(s.good)) / 20 / blocking.capacity; got < 0.98 {
			t.Errorf("%vx: %.3f of the capacity", load, got)
		}
	}
}

// A flood of the lowest class, which the pool serves in part, neither rejects the highest class nor
// delays it for more than the queue is long: it waits in the order of arrival, and replaces others.
func TestFloodOfTheLowestClass(t *testing.T) {
	s := blocking.server(t, 64, *seed)
	s.deadline = time.Second
	flood := slices.Repeat([]spillway.Criticality{spillway.Sheddable}, 19)
	took := []time.Duration{}
	s.ended = func(r *request, rejected bool) {
		if !rejected && r.class == spillway.CriticalPlus {
			took = append(took, s.now.Sub(r.arrived))
		}
	}
	s.offer(10*blocking.capacity, 3*time.Second, append(flood, spillway.CriticalPlus)...)
	s.fresh()
	took = nil
	s.offer(10*blocking.capacity, 20*time.Second, append(flood, spillway.CriticalPlus)...)
	s.run(s.now.Add(time.Second))
	slices.Sort(took)
	served, p99 := s.share(spillway.CriticalPlus), took[len(took)*99/100]
	t.Logf("CRITICAL_PLUS: %.4f served, p99 %v; all %v of %v", served, p99, s.good, s.offered)
	if served < 0.98 || p99 > 3*20*ms {
		t.Errorf("%.4f of CRITICAL_PLUS served, p99 %v", served, p99)
	}
}
