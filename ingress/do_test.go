package ingress

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// Do ends work with what it returns, and the context of work has the class and the deadline of
// the call.
func TestDo(t *testing.T) {
	broken := errors.New("broken")
	until := func(ctx context.Context) error { <-ctx.Done(); return broken }
	for name, row := range map[string]struct {
		work    func(context.Context) error
		timeout time.Duration // of the call
		leave   time.Duration // of ctx
		want    spillway.Outcome
		err     error
	}{
		"served":    {work: func(context.Context) error { return nil }, want: spillway.OutcomeServed},
		"failed":    {work: func(context.Context) error { return broken }, want: spillway.OutcomeFailed, err: broken},
		"timed out": {work: until, timeout: time.Second, want: spillway.OutcomeTimedOut, err: broken},
		"abandoned": {work: until, leave: time.Second, timeout: time.Minute, want: spillway.OutcomeAbandoned, err: broken},
		"late and good": {work: func(ctx context.Context) error { <-ctx.Done(); return nil },
			timeout: time.Second, want: spillway.OutcomeServed},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen log
			s := must(t, Config{InFlightMode: spillway.ModeOff, Observer: &seen})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			call := spillway.Call{Key: "jobs", Criticality: spillway.SheddablePlus, Level: 7, Progress: 2}
			if row.timeout > 0 {
				call.Deadline = time.Now().Add(row.timeout)
			}
			if row.leave > 0 {
				time.AfterFunc(row.leave, leave)
			}
			why, err := s.Do(spillway.WithCriticality(ctx, spillway.CriticalPlus), call, func(ctx context.Context) error {
				deadline, limited := ctx.Deadline()
				if class := spillway.CriticalityFrom(ctx); class != spillway.SheddablePlus || limited != (row.timeout > 0) || !deadline.Equal(call.Deadline) {
					t.Errorf("%s: work has the class %v and the deadline %v", name, class, deadline)
				}
				if task := spillway.TaskFrom(ctx); task.Level() != 7 || task.Progress() != 2 {
					t.Errorf("%s: work belongs to the task %v %v", name, task.Level(), task.Progress())
				}
				return row.work(ctx)
			})
			if !errors.Is(err, row.err) || why.Rejected() {
				t.Errorf("%s: %v, %v", name, why, err)
			}
			if len(seen.events) != 1 || seen.events[0].Outcome != row.want || seen.events[0].Call.Key != "jobs" {
				t.Errorf("%s: %+v, want %v", name, seen.events, row.want)
			}
		})
	}
}

// Do rejects work as it rejects requests, without calling it, and says when to come back.
func TestDoRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{Quota: perCustomer(t, 1)})
		ran := 0
		work := func(context.Context) error { ran++; return nil }
		var why Rejection
		var err error
		for range 3 {
			why, err = s.Do(t.Context(), spillway.Call{Customer: "a"}, work)
		}
		if why.Outcome != spillway.OutcomeOverQuota || why.RetryAfter <= 0 || !errors.Is(err, spillway.ErrRejected) || ran == 0 || ran == 3 {
			t.Errorf("%+v, %v after %d", why, err, ran)
		}
	})
}

// Work that belongs to a task has its level and progress at the gates.
func TestDoBelongsToATask(t *testing.T) {
	var task spillway.Task
	task.Begin(7, 2)
	for _, row := range []struct{ said, want spillway.Level }{{0, 7}, {9, 9}} {
		var seen log
		s := must(t, Config{InFlightMode: spillway.ModeOff, Observer: &seen})
		_, err := s.Do(spillway.WithTask(t.Context(), &task), spillway.Call{Level: row.said}, func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.events {
			if e.Call.Level != row.want {
				t.Errorf("level %d for %d, want %d", e.Call.Level, row.said, row.want)
			}
		}
		if len(seen.events) == 0 {
			t.Error("no event")
		}
	}
}
