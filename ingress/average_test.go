package ingress

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// The smoothed executor load average as a target, as the source has it: while
// more goroutines can run than the target allows, lower classes are rejected and
// higher ones are not; a short spike is swallowed.
func TestExecutorLoadAverageRejectsByClass(t *testing.T) {
	spinning := 40 * runtime.GOMAXPROCS(0)
	s, err := New(Config{Load: load.Config{
		Smoothing: time.Second,
		// 40 goroutines for each processor are far above the first threshold, and
		// above the second one by too little to reject all of that class.
		Thresholds: map[string]load.Thresholds{load.Average.String(): {10, 15, 200, 300}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	s.load.Utilization(now) // the average begins with what the first sample finds
	stop := spin(t, spinning)
	defer stop()

	rejected := func(c spillway.Criticality) bool { // at the highest level: the last that is rejected of a class
		now = now.Add(100 * time.Millisecond)
		return s.RejectAt(context.Background(), now, &spillway.Call{Criticality: c, Level: spillway.Levels}, new(ratelimit.Caller)).Rejected()
	}
	if rejected(spillway.Sheddable) {
		t.Error("a spike of 100 ms rejects")
	}
	for range 100 { // ten times the smoothing
		now = now.Add(100 * time.Millisecond)
		s.load.Utilization(now)
	}
	for c, want := range map[spillway.Criticality]bool{
		spillway.Sheddable: true, spillway.SheddablePlus: false, spillway.Critical: false, spillway.CriticalPlus: false,
	} {
		if got := rejected(c); got != want {
			t.Errorf("%v rejected: %v, want %v (%+v)", c, got, want, s.load.Stats(now))
		}
	}
	stop()
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		s.load.Utilization(now)
	}
	if rejected(spillway.Sheddable) {
		t.Errorf("SHEDDABLE is still rejected: %+v", s.load.Stats(now))
	}
}

// spin keeps n goroutines running or ready to run until it is stopped.
func spin(t *testing.T, n int) (stop func()) {
	t.Helper()
	var done atomic.Bool
	var left atomic.Int64
	left.Store(int64(n))
	for range n {
		go func() {
			for !done.Load() {
				runtime.Gosched()
			}
			left.Add(-1)
		}()
	}
	return func() {
		done.Store(true)
		for left.Load() > 0 {
			runtime.Gosched()
		}
	}
}

// The zero thresholds of the shedder and the zero reference of its load are the same.
func TestThresholdsAndReferenceAgree(t *testing.T) {
	value := 0.0
	m, err := load.New(load.Config{
		Signals:    []load.Signal{{Name: "x", Read: func() float64 { return value }}},
		Thresholds: map[string]load.Thresholds{"x": {1, 2, 3, 4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	now := time.Now()
	for i, want := range shed.DefaultThresholds {
		value = float64(i + 1)
		now = now.Add(time.Second)
		if got := m.Utilization(now); got != want {
			t.Errorf("threshold %d is %v to the load, %v to the shedder", i, got, want)
		}
	}
}
