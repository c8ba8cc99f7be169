package inflight

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// The last value of each range is allowed.
func TestConfigAtItsBounds(t *testing.T) {
	if _, err := New(Config{MaxRequests: math.MaxInt32, QueueDepth: math.MaxInt32}); err != nil {
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
	l.SetMaxRequests(2)
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
	l.SetMaxRequests(0)
	if err := <-w.result; !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("with a limit of 0 a waiting caller got %v", err)
	}
	if _, err := l.enter(0); err == nil {
		t.Error("with a limit of 0 a caller waits")
	}
}
