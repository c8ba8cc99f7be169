package httpproxy

import (
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

func TestPeak(t *testing.T) {
	var u users
	for range 3 {
		u.enter()
	}
	u.leave()
	u.leave()
	if got := u.peak(); got != 3 || u.count() != 1 {
		t.Errorf("at most %d, now %d, want 3 and 1", got, u.count())
	}
	if got := u.peak(); got != 1 {
		t.Errorf("since then at most %d, want 1", got)
	}
	gone := u.retire()
	if u.enter() || u.count() != 1 {
		t.Errorf("%d are there after the end", u.count())
	}
	u.leave()
	<-gone
	if got := u.peak(); got != 1 && got != 0 || u.count() != 0 {
		t.Errorf("at most %d, now %d, want none", got, u.count())
	}
}

// TestTurnsAreTimed: who waits for a turn is counted, and for how long; who need not
// is not.
func TestTurnsAreTimed(t *testing.T) {
	q := newQueue(queueLimits{places: 1, most: 1, maxWait: time.Minute})
	if err := q.enter(t.Context(), spillway.Critical, ""); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- q.enter(t.Context(), spillway.Critical, "") }()
	for q.stats().Waiting == 0 {
		<-time.After(time.Millisecond)
	}
	if err := q.enter(t.Context(), spillway.Critical, ""); !errors.Is(err, errFull) {
		t.Errorf("one more: %v", err)
	}
	q.leave()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := q.stats(); s.TurnsTotal != 1 || s.Waited <= 0 || s.Waited > time.Minute {
		t.Errorf("%+v", s)
	}
	q.leave()
}
