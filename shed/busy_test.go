package shed_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// watcher opens a stream: it has next to no work, and stays.
var watcher = kind{handler: []phase{{cpu: 20 * time.Microsecond}, {sleep: time.Hour}}}

// connect lets connections come, each with a handshake before its first request, n of them at times
// the rate that the processors can serve.
func (s *server) connect(n int, handshake time.Duration, times float64) {
	every := time.Duration(float64(handshake) / times / float64(s.processors))
	for i := range n {
		s.after(time.Duration(i)*every, func() {
			s.spawn(handshake, func() { s.arrive(allClasses[i%len(allClasses)]) })
		})
	}
}

// TestHandshakesAreNoOverload: many clients connect at once, and the handshakes keep all processors
// busy. To reject the requests behind them would relieve nothing: all are served, as soon as
// without protection.
func TestHandshakesAreNoOverload(t *testing.T) {
	for _, row := range []struct {
		n         int
		handshake time.Duration
		times     float64
	}{
		{1000, 200 * time.Microsecond, 1.2},
		{1000, 200 * time.Microsecond, 5},
		{1000, 1200 * time.Microsecond, 1.5}, // with TLS
		{1800, 200 * time.Microsecond, 2},
	} {
		for _, known := range []bool{false, true} {
			s := watcher.server(t, 2, 1)
			s.deadline, s.known = 10*time.Second, known
			s.connect(row.n, row.handshake, row.times)
			took := float64(row.n) * (row.handshake + 30*time.Microsecond).Seconds() / 2
			s.run(s.now.Add(time.Duration(1.1*took*float64(time.Second)) + 5*ms))
			started := uint64(0)
			for _, c := range s.shedder.Stats(s.now).Classes {
				started += c.AdmittedTotal
			}
			if started != uint64(row.n) || total(s.rejected) > 0 {
				t.Errorf("%+v, deadline known: %v: %d started, %d rejected", row, known, started, total(s.rejected))
			}
		}
	}
}

// TestCheapRequestsOverload: requests that cost little are an overload if there are enough of them,
// also while connections come. Half a second later the queue is short, and the capacity is used
// for the highest class.
func TestCheapRequestsOverload(t *testing.T) {
	for _, handshakes := range []int{0, 4000} {
		const cost = 50 * time.Microsecond
		s := kind{handler: []phase{{cpu: cost}}}.server(t, 2, 1)
		s.connect(handshakes, 200*time.Microsecond, 0.2) // for longer than the test takes
		rate := 2 * 2 / (cost + examining).Seconds()
		s.offer(rate, 500*ms, allClasses...)
		s.fresh()
		s.offer(rate, 500*ms, allClasses...)
		s.run(s.now.Add(20 * ms))
		st := s.shedder.Stats(s.now)
		share := float64(s.good[3]) / float64(s.offered[3])
		t.Logf("%d handshakes: served %v of %v, p99 %v", handshakes, s.good, s.offered, s.p99())
		if p99 := s.p99(); p99 > 5*ms || share < 0.95 || s.good[0] > s.offered[0]/100 || st.Waiting > 2*49 {
			t.Errorf("%d handshakes: served %v of %v, p99 %v, %d wait", handshakes, s.good, s.offered, p99, st.Waiting)
		}
	}
}

// TestWaitWithoutFreeProcessor: while no processor is free, a request waits for up to 1 s, or as long
// as its deadline leaves time; no longer, and only so many. An overload that stands ends that.
func TestWaitWithoutFreeProcessor(t *testing.T) {
	for name, row := range map[string]struct {
		deadline time.Duration
		overload bool
		want     time.Duration
	}{
		"no deadline":     {0, false, time.Second},
		"a deadline":      {2 * time.Second, false, time.Second},
		"a near deadline": {400 * ms, false, 300 * ms},
		"an overload":     {0, true, 60 * ms},
	} {
		s := must(t, shed.Config{})
		if row.overload {
			pastBurst(s)
		}
		call := &spillway.Call{Criticality: spillway.Critical}
		if row.deadline > 0 {
			call.Deadline = t0.Add(row.deadline)
		}
		w := new(shed.Waiter)
		if waits := s.Arrive(t0, call, &busy, w).MaxWait; waits != row.want {
			t.Errorf("%s: waits %v, want %v", name, waits, row.want)
		}
	}
	s := must(t, shed.Config{})
	for i := range 3000 { // of the highest class, so that none replaces another
		d, _ := arrive(s, t0, spillway.CriticalPlus, busy)
		if i >= 1000 && d.Verdict != shed.Rejected {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
}
