package egress_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// A call has the level of its task and the progress with which it began. It counts once when it was served, and not else.
func TestTaskComesFromTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		c := must(t, egress.Config{Observer: &seen, ThrottleMode: spillway.ModeOff})
		for range 100 { // which pay for retries
			_ = c.Do(t.Context(), read, works)
		}
		var task spillway.Task
		task.Begin(9, 4)
		ctx := spillway.WithTask(t.Context(), &task)
		for _, row := range []struct {
			fails           int
			progress, after spillway.Progress
		}{{0, 4, 5}, {1, 5, 6}, {3, 6, 6}, {0, 6, 7}} {
			seen.all = nil
			left := row.fails
			_ = c.Do(ctx, read, func(_ context.Context, a *egress.Attempt) error {
				if a.Task() != &task {
					t.Error("an attempt has no task")
				}
				if left--; left >= 0 {
					return overloaded{}
				}
				return nil
			})
			for _, e := range seen.all {
				if e.Call.Level != 9 || e.Call.Progress != row.progress {
					t.Errorf("%s: level %d, progress %d, want 9 and %d", e.Policy, e.Call.Level, e.Call.Progress, row.progress)
				}
			}
			if task.Progress() != row.after {
				t.Errorf("progress %d after %d failures, want %d", task.Progress(), row.fails, row.after)
			}
		}
		_ = c.Do(t.Context(), spillway.Call{Kind: spillway.KindRead, Level: 3, Progress: 1}, works)
		if last := seen.all[len(seen.all)-1].Call; last.Level != 3 || last.Progress != 1 {
			t.Errorf("without a task: level %d, progress %d, want those of the call, 3 and 1", last.Level, last.Progress)
		}
	})
}
