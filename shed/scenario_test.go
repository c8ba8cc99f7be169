package shed_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/thorough"
)

// left is the share of the capacity that rejecting the rest of a load leaves.
func left(load float64) float64 {
	const cost = float64(examining) / float64(1510*time.Microsecond)
	return min(1, (1-load*cost)/(1-cost))
}

func TestOverloadLosesNoCapacity(t *testing.T) {
	for _, row := range []struct {
		name string
		kind
		lost float64       // of what rejecting leaves
		p99  time.Duration // from 5x on
	}{
		{"computing", computing, 0.02, 5 * ms},
		{"mixed", mixed, 0.03, 60 * ms},
		{"blocking", blocking, 0.02, 80 * ms},
	} {
		for _, processors := range []int{1, 2} {
			capacity := row.capacity
			if row.pool == 0 {
				capacity *= float64(processors)
			}
			for _, load := range []float64{2, 5, 10} {
				s := row.server(t, processors, 1)
				s.offer(load*capacity, time.Second, spillway.Critical)
				s.fresh()
				s.offer(load*capacity, 3*time.Second, spillway.Critical)
				s.run(s.now.Add(200 * ms))
				got, p99 := float64(total(s.good))/3/capacity, s.p99()
				want := left(load) - row.lost
				if row.pool > 0 {
					want = 1 - row.lost
				}
				t.Logf("%s, %d processors, %vx: %.3f of the capacity, p99 %v", row.name, processors, load, got, p99)
				if got < want {
					t.Errorf("%s, %d processors, %vx: served %.3f of the capacity, want %.3f", row.name, processors, load, got, want)
				}
				if n := total(s.late); n > 0 {
					t.Errorf("%s, %d processors, %vx: %d answers were late", row.name, processors, load, n)
				}
				if load >= 5 && p99 > row.p99 {
					t.Errorf("%s, %d processors, %vx: p99 is %v, want %v", row.name, processors, load, p99, row.p99)
				}
			}
		}
	}
}

// Arrivals are random, so that now and then a short overload is real.
func TestNothingIsRejectedBelowCapacity(t *testing.T) {
	for _, k := range []kind{computing, mixed, blocking} {
		for _, load := range []float64{0.5, 0.8, 0.9} {
			rejected, offered := 0, 0
			for seed := range thorough.Seeds(4, 10) {
				s := k.server(t, 1, seed)
				s.offer(load*k.capacity, 10*time.Second, spillway.Critical)
				rejected += total(s.rejected)
				offered += total(s.offered)
			}
			if rejected > offered/1000 {
				t.Errorf("%v at %vx: %d of %d rejected", k.handler, load, rejected, offered)
			}
		}
	}
}

// Below its capacity a server answers as without a queue, whatever classes there are:
// the 99th percentile of the queue M/D/1 at nine tenths is 19 services.
func TestClassesChangeNothingBelowCapacity(t *testing.T) {
	for seed := range uint64(8) {
		s := computing.server(t, 1, seed)
		s.offer(0.9*computing.capacity, 10*time.Second, allClasses...)
		if n, p99 := total(s.rejected), s.p99(); n > 0 || p99 > 25*1510*time.Microsecond {
			t.Errorf("seed %d: %d of %d rejected, p99 %v", seed, n, total(s.offered), p99)
		}
	}
}

// Just above the capacity little of it is lost, and only the lowest class pays.
func TestJustAboveCapacity(t *testing.T) {
	for _, k := range []kind{computing, mixed, blocking} {
		for _, load := range []float64{1.05, 1.1, 1.2} {
			s := k.server(t, 1, 1)
			s.offer(load*k.capacity, time.Second, allClasses...)
			s.fresh()
			s.offer(load*k.capacity, 20*time.Second, allClasses...)
			s.run(s.now.Add(100 * ms))
			got := float64(total(s.good)) / 20 / k.capacity
			t.Logf("%v at %vx: %.3f of the capacity, rejected %v of %v", k.handler, load, got, s.rejected, s.offered)
			if got < 0.965 {
				t.Errorf("%v at %vx: %.3f of the capacity", k.handler, load, got)
			}
			if high := s.rejected[2] + s.rejected[3]; high > s.offered[2]/50 {
				t.Errorf("%v at %vx: %d of the two highest classes rejected", k.handler, load, high)
			}
		}
	}
}

// A cold server meets ten times its capacity, and then nine tenths.
func TestColdStartAndRecovery(t *testing.T) {
	for _, k := range []kind{computing, mixed, blocking} {
		s := k.server(t, 1, 1)
		s.offer(10*k.capacity, 500*ms, spillway.Critical)
		s.fresh()
		s.offer(10*k.capacity, time.Second, spillway.Critical)
		if got, want := float64(total(s.good))/k.capacity, left(10)-0.05; got < want {
			t.Errorf("%v: %.3f of the capacity after half a second, want %.3f", k.handler, got, want)
		}
		s.offer(0.9*k.capacity, time.Second, spillway.Sheddable)
		s.fresh()
		s.offer(0.9*k.capacity, 5*time.Second, spillway.Sheddable)
		if n := total(s.rejected); n > total(s.offered)/1000 {
			t.Errorf("%v: %d of %d rejected a second after the overload", k.handler, n, total(s.offered))
		}
	}
}

var allClasses = []spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus, spillway.Critical, spillway.CriticalPlus}

func TestCriticality(t *testing.T) {
	for _, k := range []kind{computing, mixed, blocking} {
		for _, row := range []struct {
			load      float64
			low, high [4]float64 // share of what each class offers that is served
		}{
			{2, [4]float64{0, 0, 0.80, 1}, [4]float64{0.02, 0.20, 1, 1}},
			{10, [4]float64{0, 0, 0, 0.30}, [4]float64{0.001, 0.001, 0.01, 0.45}},
		} {
			s := k.server(t, 1, 1)
			s.offer(row.load*k.capacity, time.Second, allClasses...)
			s.fresh()
			s.offer(row.load*k.capacity, 5*time.Second, allClasses...)
			s.run(s.now.Add(100 * ms)) // until all that arrived was decided on
			for i := range row.low {
				got := 1 - float64(s.rejected[i])/float64(s.offered[i])
				if got < row.low[i] || got > row.high[i] {
					t.Errorf("%v at %vx: %v gets %.3f, want %v to %v", k.handler, row.load, allClasses[i], got, row.low[i], row.high[i])
				}
			}
			t.Logf("%v at %vx: served %v of %v", k.handler, row.load, s.good, s.offered)
		}
	}
}

// In no tenth of a second of a steady overload do admissions fall far below the
// capacity, except for the probe of the limit.
func TestNoOscillation(t *testing.T) {
	for _, k := range []kind{computing, mixed, blocking} {
		for _, load := range []float64{2, 10} {
			s := k.server(t, 1, 1)
			s.offer(load*k.capacity, time.Second, spillway.Critical)
			low := 0
			for range 50 {
				before := s.shedder.Stats(time.Time{}).Classes[spillway.Critical.Index()].AdmittedTotal
				s.offer(load*k.capacity, 100*ms, spillway.Critical)
				n := s.shedder.Stats(time.Time{}).Classes[spillway.Critical.Index()].AdmittedTotal - before
				if float64(n) < 0.7*k.capacity*left(load)/10 {
					low++
				}
			}
			if low > 2 {
				t.Errorf("%v at %vx: %d of 50 tenths of a second admit little", k.handler, load, low)
			}
		}
	}
}

// One request in a hundred makes 300 goroutines of 50 µs ready at once. That two
// or three of them come together is as rare as the few rejections that this allows.
func TestFanOutCausesNoRejection(t *testing.T) {
	s := computing.server(t, 1, 1)
	capacity := 1 / (0.00151 + 0.01*300*0.00005)
	fans := rand.New(rand.NewPCG(1, 1))
	var fan func()
	fan = func() {
		for range 300 {
			s.spawn(50*time.Microsecond, func() {})
		}
		s.after(time.Duration(fans.ExpFloat64()/(0.008*capacity)*float64(time.Second)), fan)
	}
	s.after(0, fan)
	s.offer(0.8*capacity, 10*time.Second, spillway.Critical)
	if n := total(s.rejected); n > total(s.offered)/1000 {
		t.Errorf("%d of %d rejected", n, total(s.offered))
	}
}

// The work becomes ten times slower, without any queue: the limit in flight must
// follow, as nothing is short.
func TestSlowerWorkIsNoOverload(t *testing.T) {
	s := kind{handler: []phase{{sleep: 20 * ms}}}.server(t, 1, 1)
	s.deadline = time.Second
	s.offer(400, 2*time.Second, spillway.Critical)
	s.handler[0].sleep = 200 * ms
	s.offer(400, time.Second, spillway.Critical)
	s.fresh()
	s.offer(400, 5*time.Second, spillway.Critical)
	if n := total(s.rejected); n > 0 {
		t.Errorf("%d of %d rejected a second after the work became slower", n, total(s.offered))
	}
}

// Requests that never end delay no other request for long.
func TestStreamsAreParked(t *testing.T) {
	s := blocking.server(t, 1, 1)
	handler := s.handler
	s.handler = []phase{{sleep: time.Hour}}
	s.offer(8, 10*time.Second, spillway.Critical)
	s.handler = handler
	s.offer(0.8*blocking.capacity, 3*time.Second, spillway.Critical)
	s.fresh()
	s.offer(0.8*blocking.capacity, 5*time.Second, spillway.Critical)
	if n := total(s.rejected); n > 0 {
		t.Errorf("%d of %d rejected while %d streams are open", n, total(s.offered), s.shedder.Stats(time.Time{}).Parked)
	}
}

// Work of microseconds elsewhere, one request after the other, is not delayed if the whole
// queue drains within a millisecond.
func TestBriskWorkIsNotHeldBack(t *testing.T) {
	brisk := kind{handler: []phase{{pool: 50 * time.Microsecond}}, pool: 1, capacity: 20_000}
	s := brisk.server(t, 1, 1)
	s.offer(0.85*brisk.capacity, 3*time.Second, spillway.Critical)
	if st := s.shedder.Stats(time.Time{}); total(s.rejected) > 0 {
		t.Errorf("%d of %d rejected: %+v", total(s.rejected), total(s.offered), st)
	}
}

// Work that takes very different times, and waits for nothing that is short, is no
// overload: whatever the mix makes of mean latencies, no request is delayed.
func TestMixedLatenciesAreNoOverload(t *testing.T) {
	for _, row := range []struct {
		name  string
		rate  float64
		sleep func(u float64) time.Duration // u is uniform in [0, 1)
	}{
		{"a tenth is long", 300, func(u float64) time.Duration {
			if u < 0.1 {
				return 150 * ms
			}
			return ms
		}},
		{"a hundredth is very long", 1000, func(u float64) time.Duration {
			if u < 0.01 {
				return time.Second
			}
			return ms
		}},
		{"exponential", 500, func(u float64) time.Duration { return time.Duration(-math.Log1p(-u) * 20 * float64(ms)) }},
		{"heavy tail", 300, func(u float64) time.Duration {
			return time.Duration(math.Min(3000, 2*math.Pow(1-u, -1/1.2)) * float64(ms))
		}},
	} {
		for seed := range uint64(5) {
			s := kind{}.server(t, 1, seed)
			s.deadline = time.Minute
			s.vary = func() []phase { return []phase{{sleep: row.sleep(s.rand.Float64())}} }
			s.offer(row.rate, 5*time.Second, allClasses...) // in which the long ones first end
			if n := total(s.rejected); n > total(s.offered)/20 {
				t.Errorf("%s, seed %d: %d of %d rejected at the start", row.name, seed, n, total(s.offered))
			}
			s.fresh()
			s.offer(row.rate, 30*time.Second, allClasses...)
			if n := total(s.rejected); n > total(s.offered)/1000 {
				t.Errorf("%s, seed %d: %d of %d rejected: %+v", row.name, seed, n, total(s.offered), s.shedder.Stats(time.Time{}))
			}
		}
	}
}

// What the work waits for loses two thirds of its capacity for a while, under overload.
// Clients leave after a tenth of a second, and what they have left is worked off all
// the same: the limit must not let in so much that this is all there is to do.
func TestCapacityComesBack(t *testing.T) {
	for _, load := range []float64{1.5, 3} {
		for seed := range uint64(5) {
			work := kind{handler: []phase{{pool: 1500 * time.Microsecond}}, pool: 1, capacity: 1 / 0.0015}
			s := work.server(t, 1, seed)
			s.leave = true
			s.offer(load*work.capacity, 3*time.Second, allClasses...)
			s.handler[0].pool *= 3
			s.offer(load*work.capacity, 4*time.Second, allClasses...)
			s.handler[0].pool /= 3
			s.offer(load*work.capacity, 2*time.Second, allClasses...)
			s.fresh()
			s.offer(load*work.capacity, 5*time.Second, allClasses...)
			if got := float64(total(s.good)) / 5 / work.capacity; got < 0.95 {
				t.Errorf("%vx, seed %d: %.3f of the capacity two seconds after it was back: %+v", load, seed, got, s.shedder.Stats(time.Time{}))
			}
		}
	}
}

// What a server learns while its processors are busy may be the latency of a queue: soon
// after they are not, the queue of clients that ask again once they are answered is
// found, however long it had been there. Slower work that waits for nothing is none.
func TestQueueOfBusyTimesIsFound(t *testing.T) {
	for _, row := range []struct {
		clients int
		busy    time.Duration
	}{{200, time.Second}, {200, 11 * time.Second}, {200, 25 * time.Second}, {200, time.Minute}} {
		s := kind{handler: []phase{{pool: 5 * ms}}, pool: 4, capacity: 800}.server(t, 2, 1)
		s.deadline = time.Hour
		calm := s.now.Add(row.busy)
		s.forwards = func() float64 {
			if s.now.Before(calm) {
				return 0.9
			}
			return 0.4
		}
		s.crowd(row.clients)
		s.run(calm.Add(6 * time.Second))
		if st := s.shedder.Stats(time.Time{}); st.InFlight > 16 {
			t.Errorf("%d clients, %v busy: %+v", row.clients, row.busy, st)
		}
	}
	for _, cold := range []bool{false, true} {
		s := kind{handler: []phase{{sleep: 50 * ms}}}.server(t, 2, 1)
		s.deadline = time.Minute
		cpu := 0.4
		s.forwards = func() float64 { return cpu }
		if !cold {
			s.offer(2000, 3*time.Second, spillway.Critical)
		}
		cpu, s.handler[0].sleep = 0.9, 100*ms
		s.offer(2000, 12*time.Second, spillway.Critical)
		cpu = 0.4
		s.fresh()
		s.offer(2000, 10*time.Second, spillway.Critical)
		if n := total(s.rejected); n > total(s.offered)/50 {
			t.Errorf("cold: %v: %d of %d rejected", cold, n, total(s.offered))
		}
		s.fresh()
		s.offer(2000, 10*time.Second, spillway.Critical)
		if n := total(s.rejected); n > 0 {
			t.Errorf("cold: %v: %d of %d rejected later", cold, n, total(s.offered))
		}
	}
}

// A server starts while what does the work is ten times as slow as it will be. The queue
// of that time must not be usual ever after.
func TestQueueOfSlowStartIsFound(t *testing.T) {
	for _, slow := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		for seed := range thorough.Seeds(1, 4) {
			s := kind{handler: []phase{{pool: 50 * ms}}, pool: 4, capacity: 800}.server(t, 2, seed)
			s.deadline = time.Hour
			s.forwards = func() float64 { return 0.4 }
			s.vary = func() []phase {
				return []phase{{pool: time.Duration(float64(s.handler[0].pool) * (0.5 + s.rand.Float64()))}}
			}
			s.crowd(200)
			s.run(s.now.Add(slow))
			s.handler[0].pool = 5 * ms
			s.run(s.now.Add(12 * time.Second))
			if st := s.shedder.Stats(time.Time{}); st.InFlight > 32 {
				t.Errorf("slow for %v, seed %d: %+v", slow, seed, st)
			}
		}
	}
}

// Work of very different lengths is no queue, however much of it is in flight and however
// often the processors are busy for a while.
func TestMixedLatenciesBesideBusyTimes(t *testing.T) {
	for _, row := range []struct{ rate, long float64 }{{500, 0.5}, {3000, 0.1}, {250, 1}, {300, 1}} {
		for seed := range thorough.Seeds(2, 12) {
			s := kind{}.server(t, 1, seed)
			s.deadline = time.Minute
			begin := s.now
			s.forwards = func() float64 {
				if s.now.Sub(begin)%(4*time.Second) < 2*time.Second {
					return 0.9
				}
				return 0.4
			}
			s.vary = func() []phase {
				if s.rand.Float64() < row.long {
					return []phase{{sleep: 300 * ms}}
				}
				return []phase{{sleep: ms}}
			}
			s.offer(row.rate, 5*time.Second, allClasses...)
			s.fresh()
			s.offer(row.rate, 20*time.Second, allClasses...)
			if n := total(s.rejected); n > total(s.offered)/1000 {
				t.Errorf("%v of %v, seed %d: %d of %d rejected: %+v", row.long, row.rate, seed, n, total(s.offered), s.shedder.Stats(time.Time{}))
			}
		}
	}
}
