package inflight_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
)

func newLimiter(t *testing.T, c inflight.Config) *inflight.Limiter {
	t.Helper()
	l, err := inflight.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func as(t *testing.T, c spillway.Criticality) context.Context {
	t.Helper()
	return spillway.WithCriticality(t.Context(), c)
}

func checkIdle(t *testing.T, l *inflight.Limiter) {
	t.Helper()
	if s := l.Stats(time.Time{}); s.InFlight != 0 || s.Waiting != 0 || s.SurplusTotal != 0 {
		t.Errorf("at the end: %+v, want nothing in flight, nobody waiting, no surplus", s)
	}
}

// Places go to the highest class, and within a class to the caller that has waited longest.
func TestAcquireOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, inflight.Config{MaxInFlight: 1, QueueDepth: 12})
		if err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		var (
			mu    sync.Mutex
			order []int
			all   sync.WaitGroup
		)
		classes := []spillway.Criticality{spillway.SheddablePlus, spillway.CriticalPlus, spillway.Sheddable, spillway.Critical}
		for i := range 12 {
			all.Go(func() {
				if err := l.Acquire(as(t, classes[i%4])); err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				l.Release()
			})
			synctest.Wait() // caller i is in the queue
		}
		if s := l.Stats(time.Time{}); s.Waiting != 12 {
			t.Fatalf("%+v, want 12 waiting", s)
		}
		if l.TryAcquire() {
			t.Error("TryAcquire took a place that others wait for")
		}
		l.Release()
		all.Wait()
		if want := []int{1, 5, 9, 3, 7, 11, 0, 4, 8, 2, 6, 10}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		checkIdle(t, l)
	})
}

// A full queue rejects the caller that came last of the lowest class.
func TestAcquireQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, inflight.Config{MaxInFlight: 1, QueueDepth: 2})
		if err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		results := make([]error, 5)
		var all sync.WaitGroup
		for i, c := range []spillway.Criticality{
			spillway.Sheddable,    // waits, until the last caller comes
			spillway.Sheddable,    // waits, until the next caller comes
			spillway.Critical,     // waits
			spillway.Sheddable,    // is rejected: nobody is lower
			spillway.CriticalPlus, // waits
		} {
			all.Go(func() {
				if results[i] = l.Acquire(as(t, c)); results[i] == nil {
					l.Release()
				}
			})
			synctest.Wait()
		}
		l.Release()
		all.Wait()
		for i, admitted := range []bool{false, false, true, false, true} {
			rejected, ok := errors.AsType[*spillway.RejectedError](results[i])
			if admitted && results[i] != nil || !admitted && (!ok || rejected.Reason != spillway.ReasonQueueFull) {
				t.Errorf("caller %d: %v, want admitted %v", i, results[i], admitted)
			}
		}
		if s := l.Stats(time.Time{}); s.RejectedTotal != 3 {
			t.Errorf("%d drops, want 3", s.RejectedTotal)
		}
		checkIdle(t, l)
	})
}

// The queue depth is the limit by default; negative means that no caller waits.
func TestAcquireDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct{ depth, want int }{{0, 3}, {-1, 0}, {7, 7}} {
			l := newLimiter(t, inflight.Config{MaxInFlight: 3, QueueDepth: row.depth})
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var full atomic.Int32
			for range 3 + 10 {
				all.Go(func() {
					if err := l.Acquire(ctx); errors.Is(err, spillway.ErrRejected) {
						full.Add(1)
					}
				})
			}
			synctest.Wait()
			if s := l.Stats(time.Time{}); s.Waiting != row.want || s.InFlight != 3 || int(full.Load()) != 10-row.want {
				t.Errorf("QueueDepth %d: %+v, %d rejected; want %d waiting", row.depth, s, full.Load(), row.want)
			}
			cancel()
			all.Wait()
			for range 3 {
				l.Release()
			}
			checkIdle(t, l)
		}
	})
}

// A caller leaves at its deadline, and one whose deadline passes at the instant of its turn
// gets no place.
func TestAcquireDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, inflight.Config{MaxInFlight: 1})
		if err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Acquire(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want the deadline after 1s", err, time.Since(start))
		}
		if f := fault.Of(err); !f.Unsent || f.Retryable(true) {
			t.Errorf("%+v, want Unsent", f)
		}
		l.Release()
		if err := l.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its deadline: %v", err)
		}
		checkIdle(t, l)

		for range 100 { // the deadline and the release at one instant, in either order
			if err := l.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			time.AfterFunc(time.Second, l.Release)
			if err := l.Acquire(ctx); err == nil {
				t.Error("a place at the deadline")
			}
			synctest.Wait()
			checkIdle(t, l)
			cancel()
		}
	})
}

// A higher limit admits waiting callers at once, a lower one none until enough have ended,
// and 0 rejects all.
func TestAcquireLimitChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, inflight.Config{MaxInFlight: 2, QueueDepth: 100})
		var all sync.WaitGroup
		var admitted, rejected atomic.Int32
		for range 12 {
			all.Go(func() {
				switch err := l.Acquire(t.Context()); {
				case err == nil:
					admitted.Add(1)
				case errors.Is(err, spillway.ErrRejected):
					rejected.Add(1)
				}
			})
		}
		for i, row := range []struct {
			limit              uint32
			releases           int
			admitted, rejected int32
		}{
			{limit: 2, admitted: 2},
			{limit: 5, admitted: 5},
			{limit: 3, admitted: 5},
			{limit: 3, releases: 2, admitted: 5},
			{limit: 3, releases: 1, admitted: 6},
			{limit: 0, admitted: 6, rejected: 6},
			{limit: 4, releases: 3, admitted: 6, rejected: 6},
		} {
			l.SetMaxInFlight(row.limit)
			for range row.releases {
				l.Release()
			}
			synctest.Wait()
			if a, r := admitted.Load(), rejected.Load(); a != row.admitted || r != row.rejected {
				t.Errorf("row %d: %d admitted and %d rejected, want %d and %d", i, a, r, row.admitted, row.rejected)
			}
		}
		all.Wait()
		checkIdle(t, l)
	})
}

// Callers come, leave and release at random, while the limit changes and others call
// TryAcquire: the limit is never exceeded, no slot is lost, and no caller waits for ever.
func TestAcquireStorm(t *testing.T) {
	const limit = 4
	l := newLimiter(t, inflight.Config{MaxInFlight: limit, QueueDepth: 16})
	var (
		all      sync.WaitGroup
		inFlight atomic.Int32
		served   atomic.Int32
	)
	work := func() {
		if n := inFlight.Add(1); n > limit {
			t.Errorf("%d in flight, above the limit of %d", n, limit)
		}
		served.Add(1)
		inFlight.Add(-1)
		l.Release()
	}
	for range 8 {
		all.Go(func() {
			for range 2000 {
				ctx, cancel := context.WithCancel(as(t, spillway.Criticality(rand.IntN(4)-2)))
				switch rand.IntN(4) {
				case 0:
					go cancel() // while it waits, or as it gets its place
				case 1:
					if l.TryAcquire() {
						work()
					}
				}
				if l.Acquire(ctx) == nil {
					work()
				}
				cancel()
			}
		})
	}
	all.Go(func() {
		for i := range 2000 {
			l.SetMaxInFlight(uint32(1 + i%limit))
		}
		l.SetMaxInFlight(limit)
	})
	all.Wait()
	if served.Load() == 0 {
		t.Error("nothing was served")
	}
	checkIdle(t, l)
}

// Neither a place that is free nor a rejection allocates.
func TestAcquireAllocates(t *testing.T) {
	l := newLimiter(t, inflight.Config{MaxInFlight: 1, QueueDepth: -1})
	ctx := as(t, spillway.Sheddable)
	if n := testing.AllocsPerRun(100, func() {
		if l.Acquire(ctx) != nil {
			t.Error("rejected")
		}
		if l.Acquire(ctx) == nil {
			t.Error("admitted")
		}
		l.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
