package inflight

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// The last value of each range is allowed.
func TestConfigAtItsBounds(t *testing.T) {
	if _, err := New(Config{MaxInFlight: math.MaxInt32, QueueDepth: math.MaxInt32}); err != nil {
		t.Error(err)
	}
}

// A caller that waits has the next place, ahead of callers that ask only then; one that gives
// up gives the place back that it has got meanwhile.
func TestHandOver(t *testing.T) {
	l := mustNew(t, 1)
	if !l.TryAcquire() {
		t.Fatal("no first place")
	}
	first, err := l.enter(2)
	if err != nil || first == nil {
		t.Fatal(first, err)
	}
	l.Release()
	if err := <-first.result; err != nil || l.TryAcquire() {
		t.Errorf("the waiter got %v, or another caller its place", err)
	}
	second, err := l.enter(1)
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(time.Time{}); s.InFlight != 1 || s.Waiting != 1 {
		t.Errorf("one in flight and one waiting are %+v", s)
	}
	l.Release()
	if l.leave(second); l.Stats(time.Time{}).InFlight != 0 || l.Stats(time.Time{}).Waiting != 0 {
		t.Errorf("after the last one left: %+v", l.Stats(time.Time{}))
	}
}

// Above a limit that was lowered, a place that is given back is gone; at the limit it is handed
// over. Without any place, waiting callers are rejected.
func TestHandOverUnderALoweredLimit(t *testing.T) {
	l := mustNew(t, 3)
	for range 3 {
		l.TryAcquire()
	}
	w, err := l.enter(0)
	if err != nil {
		t.Fatal(err)
	}
	l.SetMaxInFlight(2)
	if l.Release(); l.Stats(time.Time{}).InFlight != 2 || l.Stats(time.Time{}).Waiting != 1 {
		t.Errorf("3 of 2 in flight, and one ends: %+v", l.Stats(time.Time{}))
	}
	if l.Release(); l.Stats(time.Time{}).InFlight != 2 || l.Stats(time.Time{}).Waiting != 0 || <-w.result != nil {
		t.Errorf("2 of 2 in flight, and one ends: %+v", l.Stats(time.Time{}))
	}
	w, err = l.enter(0)
	if err != nil {
		t.Fatal(err)
	}
	l.SetMaxInFlight(0)
	if err := <-w.result; !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("with a limit of 0 a waiting caller got %v", err)
	}
	if _, err := l.enter(0); err == nil {
		t.Error("with a limit of 0 a caller waits")
	}
}

// A slot is kept for a higher class for a minute after its last call, which is noted once in a
// second.
func TestSeldomCallsKeepASlot(t *testing.T) {
	for _, row := range []struct {
		name  string
		calls []time.Duration
		at    time.Duration
		want  int
	}{
		{"within the minute", []time.Duration{0}, time.Minute - 1, 15},
		{"after the minute", []time.Duration{0}, time.Minute, 16},
		{"a second call within a second", []time.Duration{0, time.Second / 2}, time.Minute, 16},
		{"a second call after a second", []time.Duration{0, time.Second}, time.Minute, 16},
		{"a later call", []time.Duration{0, time.Second + 1}, time.Minute, 15},
	} {
		l := mustNew(t, 16)
		for _, at := range row.calls {
			ticket, err := l.Admit(t0.Add(at), spillway.Call{Criticality: spillway.CriticalPlus})
			if err != nil {
				t.Fatal(err)
			}
			ticket.Settle(t0.Add(at), spillway.OutcomeServed)
		}
		n := 0
		for range 17 {
			if _, err := l.Admit(t0.Add(row.at), spillway.Call{Criticality: spillway.Sheddable}); err == nil {
				n++
			}
		}
		if n != row.want {
			t.Errorf("%s: a lower class got %d of 16, want %d", row.name, n, row.want)
		}
	}
}

// A span ends at its end, and at once if the clock steps back.
func TestSpanEnds(t *testing.T) {
	for at, want := range map[int64]bool{2*span - 1: false, 2 * span: true, 2*span + 1: true, span: false, span - 1: true} {
		var ends atomic.Int64
		ends.Store(2 * span)
		if over(&ends, at) != want {
			t.Errorf("a span that ends at %d is over at %d: %v", 2*span, at, !want)
		}
	}
}

// While another caller is about to enter the queue, a free place is taken and not waited for.
func TestPlaceBesideACallerThatIsAboutToWait(t *testing.T) {
	l := mustNew(t, 1)
	l.queue.waiting.Add(1)
	if w, err := l.enter(0); w != nil || err != nil {
		t.Errorf("a caller waits beside a free place: %v, %v", w, err)
	}
	if s := l.Stats(t0); s.InFlight != 1 || s.Waiting != 1 {
		t.Errorf("%+v, want one in flight and the other one waiting", s)
	}
}

// A place that is handed over is counted all the time, so that no other caller can take it.
func TestHandedOverPlaceIsNeverFree(t *testing.T) {
	l := mustNew(t, 1)
	l.TryAcquire()
	w, err := l.enter(0)
	if err != nil {
		t.Fatal(err)
	}
	if !l.handOver() || <-w.result != nil || l.Stats(t0).InFlight != 1 {
		t.Errorf("not handed over: %+v", l.Stats(t0))
	}
	if l.handOver() {
		t.Error("a place is handed over to nobody")
	}
}
