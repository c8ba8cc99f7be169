package degradation_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/degradation"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
)

// thresholds are those of package shed.
var thresholds = [...]float64{0.80, 0.87, 0.95, 1}

// queueModel is a task with one processor and a bounded queue, whose answers cost
// less at higher levels. It is fed by Poisson arrivals.
type queueModel struct {
	degrader degradation.Degrader
	rng      *rand.Rand
	cost     [spillway.DegradationLevels]time.Duration // of an answer
	mix      [spillway.Criticalities]float64
	retries  int // of those that are rejected, at once

	now, free time.Time // when the processor is free
	look      time.Time
	queue     []time.Time // when the waiting ones are done
	pressure  degradation.Pressure
	served    int
	changes   [spillway.Criticalities][]time.Duration // of the level of each class
	levels    [spillway.DegradationLevels]int         // answers
}

const queueCapacity = 49

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newQueueModel(t *testing.T, seed uint64, full time.Duration, cheap float64) *queueModel {
	t.Helper()
	race.SkipOneGoroutine(t)
	c := time.Duration(float64(full) * cheap)
	m := &queueModel{
		rng: rand.New(rand.NewPCG(seed, 1)), cost: [4]time.Duration{full, c, c, c},
		mix: [4]float64{0.25, 0.25, 0.25, 0.25}, now: began, free: began, look: began,
	}
	m.degrader.Observe(began, m.pressure)
	return m
}

// run offers rate requests per second for d.
func (m *queueModel) run(rate float64, d time.Duration) {
	end := m.now.Add(d)
	for {
		next := m.now.Add(time.Duration(m.rng.ExpFloat64() / rate * float64(time.Second)))
		if next.After(end) {
			m.now = end
			return
		}
		m.now = next
		for range m.retries + 1 {
			if m.arrive() {
				break
			}
		}
	}
}

func (m *queueModel) arrive() bool {
	for len(m.queue) > 0 && !m.queue[0].After(m.now) {
		m.queue = m.queue[1:]
	}
	class, x := 0, m.rng.Float64()
	for x > m.mix[class] {
		x -= m.mix[class]
		class++
	}
	m.pressure.Offered[class]++
	if m.now.Sub(m.look) >= 10*time.Millisecond {
		m.look = m.now
		m.pressure.Fill = float64(len(m.queue)) / queueCapacity
		before := m.degrader.Stats(time.Time{}).Levels
		m.degrader.Observe(m.now, m.pressure)
		for class, level := range m.degrader.Stats(time.Time{}).Levels {
			if level != before[class] {
				m.changes[class] = append(m.changes[class], m.now.Sub(began))
			}
		}
	}
	if len(m.queue) >= queueCapacity {
		m.pressure.Rejected[class]++
		return false
	}
	level := m.degrader.Level(spillway.Criticality(class) + spillway.Sheddable)
	if m.free.Before(m.now) {
		m.free = m.now
	}
	m.free = m.free.Add(m.cost[level])
	m.queue = append(m.queue, m.free)
	m.served++
	m.levels[level]++
	return true
}

// mostChanges returns the greatest number of changes of one class within a minute
// after from.
func (m *queueModel) mostChanges(from time.Duration) (most int) {
	for class, changes := range m.changes {
		if m.mix[class] == 0 {
			continue
		}
		for i, a := range changes {
			n := 0
			for _, b := range changes[i:] {
				if a >= from && b < a+time.Minute {
					n++
				}
			}
			most = max(most, n)
		}
	}
	return most
}

// Whatever steady load is offered, for whatever costs and classes, and whether the
// rejected come again or not, a level changes at most four times a minute.
func TestLevelsAreSteadyInSteadyLoad(t *testing.T) {
	const full = 1500 * time.Microsecond
	loads := []float64{0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.3, 1.5, 2, 2.9, 3.1, 5}
	if !thorough.Enabled() {
		loads = []float64{0.8, 0.95, 1.5, 3.1}
	}
	for _, offered := range loads {
		for _, cheap := range []float64{1, 1. / 3, 0.05} {
			for name, mix := range map[string][4]float64{"four classes": {0.25, 0.25, 0.25, 0.25}, "one class": {0, 0, 1, 0}, "two": {0.9, 0, 0, 0.1}} {
				for _, retries := range []int{0, 2} {
					m := newQueueModel(t, 7, full, cheap)
					m.mix, m.retries = mix, retries
					m.run(offered/full.Seconds(), 3*time.Minute)
					if n := m.mostChanges(30 * time.Second); n > 4 {
						t.Errorf("offered %v, cheap %.2f, %s, %d retries: %d changes in a minute: %v", offered, cheap, name, retries, n, m.changes)
					}
					if n := m.degrader.Stats(time.Time{}).Stage; offered <= 0.8 && len(m.changes[0]) > 0 {
						t.Errorf("offered %v, cheap %.2f, %s: stage %d, changes %v", offered, cheap, name, n, m.changes)
					}
				}
			}
		}
	}
}

// At a low rate of slow requests chance must not look like a change of the load.
func TestLevelsOfSlowRequests(t *testing.T) {
	for seed := range uint64(20) {
		m := newQueueModel(t, seed, 100*time.Millisecond, 1./3)
		m.run(20, 10*time.Minute)
		if n := m.mostChanges(time.Minute); n > 4 {
			t.Errorf("seed %d: %d changes in a minute: %v", seed, n, m.changes)
		}
	}
}

// At twice the capacity of full answers, answers that cost a third serve all.
func TestDegradationRaisesGoodput(t *testing.T) {
	const full = 1500 * time.Microsecond
	m := newQueueModel(t, 3, full, 1./3)
	m.run(0.5/full.Seconds(), 10*time.Second)
	if m.degrader.Stats(time.Time{}).Stage != 0 {
		t.Fatalf("at half of the load: %+v", m.degrader.Stats(time.Time{}))
	}
	before := m.served
	m.run(2/full.Seconds(), 10*time.Second)
	goodput := float64(m.served-before) / 10 * full.Seconds()
	if goodput < 1.9 {
		t.Errorf("goodput %.2f of the capacity of full answers, want 1.9", goodput)
	}
	if m.degrader.Stats(time.Time{}).Stage == 0 {
		t.Errorf("no degradation at the end: %v", m.changes)
	}
	m.run(0.5/full.Seconds(), 20*time.Second)
	if s := m.degrader.Stats(time.Time{}); s.Stage != 0 {
		t.Errorf("20 s after the overload: %+v, changes %v", s, m.changes)
	}
}

// The lowest class is degraded first and comes back last, and no class is further
// from full answers than a lower one.
func TestLowerClassesDegradeFirst(t *testing.T) {
	const full = 1500 * time.Microsecond
	m := newQueueModel(t, 5, full, 1./3)
	for _, offered := range []float64{0.5, 1.1, 1.2, 1.4, 2, 4, 1, 0.5, 0.3} {
		for range 50 {
			m.run(offered/full.Seconds(), 100*time.Millisecond)
			l := m.degrader.Stats(time.Time{}).Levels
			for class := 1; class < len(l); class++ {
				if l[class] > l[class-1] {
					t.Fatalf("offered %v: levels %v", offered, l)
				}
			}
		}
	}
}

// Load that comes and goes must not be followed for ever.
func TestLevelsOfFlappingLoad(t *testing.T) {
	const full = 1500 * time.Microsecond
	m := newQueueModel(t, 9, full, 1./3)
	for range 60 {
		m.run(2/full.Seconds(), 3*time.Second)
		m.run(0.3/full.Seconds(), 4*time.Second)
	}
	if n := m.mostChanges(30 * time.Second); n > 2*(spillway.DegradationLevels-1) { // once down and up again
		t.Errorf("%d changes in a minute: %v", n, m.changes)
	}
}

func TestUtilizationDegradesThoseThatAreNear(t *testing.T) {
	for _, row := range []struct {
		utilization float64
		stage       int
	}{{0.5, 0}, {0.74, 0}, {0.76, 1}, {0.83, 2}, {0.91, 3}, {0.96, 4}, {5, 4}} {
		var d degradation.Degrader
		p := degradation.Pressure{Utilization: row.utilization, Thresholds: thresholds}
		now := began
		for range 1000 {
			for i := range p.Offered {
				p.Offered[i]++
			}
			now = now.Add(10 * time.Millisecond)
			d.Observe(now, p)
		}
		if got := d.Stats(now).Stage; got != row.stage {
			t.Errorf("utilization %v: stage %d, want %d", row.utilization, got, row.stage)
		}
	}
}

// An idle task forgets that it was overloaded.
func TestDegradationAfterIdleTime(t *testing.T) {
	const full = 1500 * time.Microsecond
	m := newQueueModel(t, 11, full, 1)
	m.run(5/full.Seconds(), 5*time.Second)
	if s := m.degrader.Stats(time.Time{}); s.Stage != degradation.Stages {
		t.Fatalf("stage %d", s.Stage)
	}
	m.now = m.now.Add(time.Hour)
	m.degrader.Observe(m.now, m.pressure)
	if s := m.degrader.Stats(time.Time{}); s.Stage != 0 {
		t.Errorf("after an hour: stage %d", s.Stage)
	}
	m.degrader.Observe(began, m.pressure) // a clock that is set back
}

func TestDegraderAllocatesNothing(t *testing.T) {
	var d degradation.Degrader
	now, p := began, degradation.Pressure{Fill: 1}
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(10 * time.Millisecond)
		p.Offered[0]++
		d.Observe(now, p)
		_ = d.Level(spillway.Sheddable)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Counters that jump, clocks that step and values that make no sense never break
// the order of the levels.
func FuzzDegrader(f *testing.F) {
	f.Add([]byte{1, 255, 3, 9, 200, 0, 0, 1})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var d degradation.Degrader
		now, p := began, degradation.Pressure{Thresholds: thresholds}
		for _, b := range steps {
			now = now.Add(time.Duration(int8(b)) * 37 * time.Millisecond)
			p.Fill = float64(b%8) / 4
			p.Utilization = float64(b%16) / 8
			p.Offered[b%4] += uint64(b)
			p.Rejected[b%4] += uint64(b % 32)
			d.Observe(now, p)
			s := d.Stats(now)
			if s.Stage < 0 || s.Stage > degradation.Stages {
				t.Fatal(fmt.Sprint(s))
			}
		}
	})
}

// Thousands of handlers ask for their level while it changes.
func TestLevelsAreReadConcurrently(t *testing.T) {
	var d degradation.Degrader
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 2000 {
		c := spillway.Criticality(i%spillway.Criticalities) + spillway.Sheddable
		wg.Go(func() {
			for last := false; !last; {
				select {
				case <-stop:
					last = true
				default:
				}
				if l := d.Level(c); l > spillway.DegradationHigh {
					t.Errorf("level %v", l)
				}
				d.Stats(time.Time{})
				runtime.Gosched()
			}
		})
	}
	now, p := began, degradation.Pressure{}
	for i := range 3000 {
		p.Fill = float64(i / 500 % 2)
		for class := range p.Offered {
			p.Offered[class] += 20
		}
		now = now.Add(10 * time.Millisecond)
		d.Observe(now, p)
	}
	close(stop)
	wg.Wait()
	if d.Stats(now).ChangesTotal == 0 {
		t.Error("the level never changed")
	}
}
