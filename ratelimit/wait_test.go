package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ratelimit"
)

func limiter(t *testing.T, c ratelimit.Config) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Ten tokens are there, and then one comes every 100 ms.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Config{Rate: 10, QueueDepth: 100})
		start := time.Now()
		for i := range 15 {
			if err := l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := max(0, time.Duration(i-9)) * 100 * time.Millisecond
			if got := time.Since(start); got != want {
				t.Errorf("call %d went ahead after %v, want %v", i, got, want)
			}
		}
		if s := l.Stats(time.Now()); s.AdmittedTotal != 15 || s.QueuedTotal != 5 || s.AbandonedTotal != 0 || s.Waiting != 0 || s.TimeQueued != 500*time.Millisecond {
			t.Errorf("stats %+v", s)
		}
	})
}

// Callers go ahead in the order of their arrival, and no faster than the rate.
func TestWaitOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Config{Rate: 100, BurstSeconds: 0.01, QueueDepth: 50})
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		var (
			mu    sync.Mutex
			order []int
			all   sync.WaitGroup
		)
		for i := range 50 {
			all.Go(func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait() // caller i is in the queue
		}
		start := time.Now()
		if err := l.Wait(t.Context()); !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("beyond the depth of the queue: %v, want a rejection", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("the rejection took %v", time.Since(start))
		}
		all.Wait()
		if took := time.Since(start); took != 500*time.Millisecond {
			t.Errorf("50 callers at 100 per second took %v, want 500ms", took)
		}
		for i, caller := range order {
			if i != caller {
				t.Fatalf("order %v", order)
			}
		}
	})
}

// A caller whose deadline is before its token is rejected at once and takes no token. One
// that leaves while it waits gives its token back.
func TestWaitDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Config{Rate: 1, QueueDepth: 10})
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		err := l.Wait(short)
		rejected, ok := errors.AsType[*spillway.RejectedError](err)
		if !ok || rejected.Reason != spillway.ReasonDeadline || time.Since(start) != 0 {
			t.Errorf("deadline before the token: %v after %v, want a rejection for the deadline at once", err, time.Since(start))
		}
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, leave)
		err = l.Wait(leaving)
		if !errors.Is(err, context.Canceled) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("left: %v after %v", err, time.Since(start))
		}
		if f := fault.Of(err); !f.Unsent || f.Retryable(true) {
			t.Errorf("left: %+v, want Unsent", f)
		}
		if err = l.Wait(leaving); !errors.Is(err, context.Canceled) {
			t.Errorf("of a context that has ended: %v", err)
		}
		if err := l.Wait(t.Context()); err != nil || time.Since(start) != time.Second {
			t.Errorf("the next caller: %v after %v, want the first token, after 1s", err, time.Since(start))
		}
		if s := l.Stats(time.Now()); s.Waiting != 0 || s.AbandonedTotal != 1 || s.RejectedTotal != 1 || s.AdmittedTotal != 2 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Without a queue Wait rejects, as Admit does. Without a limit nobody waits.
func TestWaitWithoutQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Config{Rate: 1})
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.Wait(t.Context()); !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("%v, want a rejection", err)
		}
		open := limiter(t, ratelimit.Config{})
		start := time.Now()
		for range 1000 {
			if err := open.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("without a limit 1000 calls took %v", time.Since(start))
		}
	})
}
