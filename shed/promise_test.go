package shed

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/pace"
)

// The first call of a task may wait for its share of the time to the deadline where a queue was found, and the others as if they were alone.
func TestFirstCallWaitsForItsShare(t *testing.T) {
	var c cascade
	if c.calls() != 1 {
		t.Errorf("%v calls of a task, and none has come", c.calls())
	}
	for i := range 5000 {
		c.admit(orderOf(4, spillway.Progress(i%10), 9))
	}
	calls := c.calls()
	if calls < 9 || calls > 11 {
		t.Errorf("%v calls of a task, want 10", calls)
	}
	now := time.Unix(1e9, 0)
	call := &spillway.Call{Deadline: now.Add(time.Second)}
	for _, row := range []struct {
		pace  pace.Pace
		calls float64
		want  time.Duration
	}{
		{pace.Pace{Found: true, Parked: time.Minute, Latency: 0.01}, 10, 60 * time.Millisecond},
		{pace.Pace{Found: true, Parked: time.Minute, Latency: 0.01}, 1, 735 * time.Millisecond},
		{pace.Pace{Found: true, Parked: time.Minute, Latency: 0.05}, 20, 12500 * time.Microsecond},
		{pace.Pace{Latency: 0.01}, 10, 735 * time.Millisecond},
	} {
		if got, _ := patience(now, call, &row.pace, time.Minute, row.calls); got.Round(time.Microsecond) != row.want {
			t.Errorf("%+v, %v calls: waits for %v, want %v", row.pace, row.calls, got, row.want)
		}
	}
	for range 100_000 { // of tasks that have all begun elsewhere
		c.admit(orderOf(4, 1, 9))
	}
	if c.calls() != mostCalls {
		t.Errorf("%v calls of a task, want %v at most", c.calls(), mostCalls)
	}
}
