package ingress

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A processor becomes free for one request at a time.
func TestWaitersRunByCriticality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		s := must(t, Config{Observer: &seen})
		first := occupy(t, s)
		var free atomic.Bool
		s.core.State = func(time.Time) shed.State {
			if free.Swap(false) {
				return shed.State{Processors: 1}
			}
			return shed.State{Processors: 1, Runnable: 5}
		}
		var rejected sync.WaitGroup // only where somebody is do waiters run by criticality
		for range 8 {
			rejected.Go(func() {
				if _, r := enter(s, spillway.Call{Criticality: spillway.Sheddable}); !r.Rejected() {
					t.Error("ran on a busy processor")
				}
			})
		}
		rejected.Wait()
		seen.take()
		var mu sync.Mutex
		var order []spillway.Criticality
		for _, c := range []spillway.Criticality{-2, 1, -1, 0} {
			go func() {
				p, r := enter(s, spillway.Call{Criticality: c})
				if r.Rejected() {
					t.Errorf("%v: %+v", c, r)
				}
				mu.Lock()
				order = append(order, c)
				mu.Unlock()
				p.Done(spillway.OutcomeServed)
			}()
		}
		time.Sleep(time.Millisecond)
		for i := range 4 {
			free.Store(true)
			time.Sleep(3 * time.Millisecond)
			synctest.Wait()
			if mu.Lock(); len(order) != i+1 {
				t.Errorf("%d run, want %d", len(order), i+1)
			}
			mu.Unlock()
		}
		first.Done(spillway.OutcomeServed)
		if want := []spillway.Criticality{1, 0, -1, -2}; !slices.Equal(order, want) {
			t.Errorf("ran in the order %v", order)
		}
		if st := s.Stats(time.Now()).Shed; st.InFlight != 0 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
		if got := strings.Count(seen.take(), "shed served"); got != 5 {
			t.Errorf("%d events", got)
		}
	})
}

// The real dispatcher lets waiters in, one after the other has ended.
func TestDispatcher(t *testing.T) {
	s := must(t, Config{Shed: shed.Config{MaxWait: 10 * time.Second}})
	var inside atomic.Int64
	s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1, Runnable: int(inside.Load())} }
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			p, r := enter(s, spillway.Call{})
			if r.Rejected() {
				t.Errorf("%+v", r)
				return
			}
			inside.Add(1)
			for range 100 {
				runtime.Gosched()
			}
			inside.Add(-1)
			p.Done(spillway.OutcomeServed)
		})
	}
	all.Wait()
	if n := s.Stats(time.Now()).Shed; n.InFlight != 0 || n.Waiting != 0 || n.Classes[2].AdmittedTotal != 50 {
		t.Errorf("%+v", n)
	}
}

func TestWaitHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		s := must(t, Config{Observer: &seen})
		first := occupy(t, s)
		start := time.Now()
		_, r := enter(s, spillway.Call{})
		if r.Outcome != spillway.OutcomeOverloaded || time.Since(start) != 60*time.Millisecond {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			time.Sleep(10 * time.Millisecond)
			cancel()
		}()
		start = time.Now()
		_, r = s.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
		if r.Outcome != spillway.OutcomeAbandoned || r.Err != context.Canceled || time.Since(start) != 10*time.Millisecond {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
		first.Done(spillway.OutcomeServed)
		want := "shed rejected, shed abandoned, shed served"
		if got := seen.take(); got != want {
			t.Errorf("events: %s; want %s", got, want)
		}
		if st := s.Stats(time.Now()).Shed; st.Waiting != 0 || st.InFlight != 0 || st.Classes[spillway.Critical.Index()].RejectedTotal != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A lower class that waits learns when it was evicted.
func TestEvictedWaiterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{Shed: shed.Config{MaxWait: 10 * time.Second}})
		defer occupy(t, s).Done(spillway.OutcomeServed)
		var rejected, left atomic.Int64
		start := func(c spillway.Criticality, n int) context.CancelFunc {
			ctx, cancel := context.WithCancel(context.Background())
			for range n {
				go func() {
					switch _, r := s.Enter(ctx, spillway.Call{Criticality: c}, ratelimit.Caller{}); r.Outcome {
					case spillway.OutcomeOverloaded:
						rejected.Add(1)
					case spillway.OutcomeAbandoned:
						left.Add(1)
					}
				}()
			}
			time.Sleep(time.Millisecond)
			return cancel
		}
		const low, high = 40, 20
		cancel := start(spillway.Sheddable, low)
		if n := s.core.Shedder().Waiting(); n != low {
			t.Errorf("%d wait, want %d", n, low)
		}
		cancelHigh := start(spillway.CriticalPlus, high)
		evicted := rejected.Load()
		if n := s.core.Shedder().Waiting(); evicted < high/2 || n != low+high-int(evicted) {
			t.Errorf("of %d waiters %d were evicted, and %d wait", low, evicted, n)
		}
		cancel()
		if time.Sleep(time.Millisecond); s.core.Shedder().Waiting() != high {
			t.Errorf("%d wait, want the %d that matter more", s.core.Shedder().Waiting(), high)
		}
		cancelHigh()
		time.Sleep(time.Millisecond)
		if n := left.Load(); n != low+high-rejected.Load() || s.core.Shedder().Waiting() != 0 {
			t.Errorf("%d left", n)
		}
	})
}

func TestRateLimitQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 2}})
		var mu sync.Mutex
		var waits []time.Duration
		start := time.Now()
		for range 4 {
			go func() {
				p, r := enter(s, spillway.Call{})
				p.Done(spillway.OutcomeServed)
				mu.Lock()
				defer mu.Unlock()
				if !r.Rejected() {
					waits = append(waits, time.Since(start).Round(time.Millisecond))
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}; !slices.Equal(waits, want) {
			t.Errorf("admitted after %v, want %v", waits, want)
		}
		// Who leaves gives the token back.
		p, _ := enter(s, spillway.Call{})
		p.Done(spillway.OutcomeServed)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, r := s.Enter(ctx, spillway.Call{}, ratelimit.Caller{}); r.Outcome != spillway.OutcomeAbandoned {
			t.Errorf("%+v", r)
		}
		if st := s.Stats(time.Now()).RateLimit; st.AbandonedTotal != 1 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A request that would have to wait for a token until after its deadline is rejected
// at once, and takes none.
func TestRateLimitQueueAndDeadline(t *testing.T) {
	for _, row := range []struct {
		mode     spillway.Mode
		rejected bool
		want     string
	}{
		{spillway.ModeEnforce, true, "ratelimit rejected"},
		{spillway.ModeObserve, false, "ratelimit rejected (observe)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen log
			s := must(t, Config{
				RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 2}, RateLimitMode: row.mode,
				ShedMode: spillway.ModeOff, Observer: &seen,
			})
			first, _ := enter(s, spillway.Call{})
			first.Done(spillway.OutcomeServed)
			seen.take()
			start := time.Now()
			p, r := enter(s, spillway.Call{Deadline: start.Add(50 * time.Millisecond)})
			p.Done(spillway.OutcomeServed)
			if got := seen.take(); got != row.want || r.Rejected() != row.rejected || row.rejected && r.RetryAfter <= 0 {
				t.Errorf("%v: %s, %+v; want %s", row.mode, got, r, row.want)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("%v: answered after %v", row.mode, took)
			}
			if st := s.Stats(start).RateLimit; st.Waiting != 0 || st.Tokens != 0 {
				t.Errorf("%v: %+v", row.mode, st)
			}
		})
	}
}

// TestSuspendedIsNoWork suspends requests from several goroutines, ends them in the
// middle, and checks that no work is left in the count.
func TestSuspendedIsNoWork(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	working := func() int { return s.Stats(time.Now()).Concurrency.Shared.InFlight }
	p, _ := s.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
	p.Suspend(time.Now())
	p.Suspend(time.Now())
	p.Resume(time.Now())
	if got := working(); got != 0 {
		t.Errorf("%d work while one waits for its client", got)
	}
	p.Resume(time.Now())
	if got := working(); got != 1 {
		t.Errorf("%d work after as many Resume as Suspend, want 1", got)
	}
	p.Done(spillway.OutcomeServed)
	for range 100 {
		p, _ := s.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				for range 10 {
					p.Suspend(time.Now())
					p.Resume(time.Now())
				}
				p.Suspend(time.Now())
			})
		}
		group.Go(func() { p.Done(spillway.OutcomeServed) })
		group.Wait()
	}
	if got := working(); got != 0 {
		t.Errorf("%d work after all have ended", got)
	}
}
