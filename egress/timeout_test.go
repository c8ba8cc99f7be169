package egress_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

// never is the latency of a call that is not answered.
const never = time.Hour

// A trial is calls to a backend whose latency is known, in virtual time.
type trial struct {
	limit    uint32        // in flight
	raised   uint32        // the limit after half of the length; 0: the same
	every    time.Duration // between calls
	deadline time.Duration
	length   time.Duration
	// takes is how long the call i takes that is sent at a time.
	takes func(at time.Duration, i int) time.Duration
	// route is that of the call i; nil means one for all.
	route func(i int) string
}

// run returns how many calls were sent per second in the last quarter of the trial, and
// how many were in flight at its end.
func (x trial) run(t *testing.T) (sent float64, flying int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := inflight.New(inflight.Config{MaxInFlight: int(x.limit)})
		if err != nil {
			t.Fatal(err)
		}
		client := must(t, egress.Config{InFlight: limiter})
		begin := time.Now()
		var calls sync.WaitGroup
		for i := 0; time.Since(begin) < x.length; i++ {
			at := time.Since(begin)
			if x.raised > 0 && at >= x.length/2 {
				limiter.SetMaxInFlight(x.raised)
			}
			call := spillway.Call{Key: "method"}
			if x.route != nil {
				call.Key = x.route(i)
			}
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), x.deadline)
				defer cancel()
				_ = client.Do(ctx, call, func(ctx context.Context, _ *egress.Attempt) error {
					if at >= x.length*3/4 {
						sent++ // one goroutine runs at a time: the loop waits for this one
					}
					select {
					case <-time.After(x.takes(at, i)):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			})
			synctest.Wait()
			time.Sleep(x.every)
		}
		flying = limiter.Stats(time.Now()).InFlight
		calls.Wait()
	})
	return sent / (x.length / 4).Seconds(), flying
}

// dead is a backend that never answers.
func dead(time.Duration, int) time.Duration { return never }

// hangs is a backend that answers in 10 ms, and from some time on not at all.
func hangs(from time.Duration) func(time.Duration, int) time.Duration {
	return func(at time.Duration, _ int) time.Duration {
		if at < from {
			return 10 * time.Millisecond
		}
		return never
	}
}

// share is a backend that answers every n-th call in 10 ms and no others.
func share(n int) func(time.Duration, int) time.Duration {
	return func(_ time.Duration, i int) time.Duration {
		if i%n == 0 {
			return 10 * time.Millisecond
		}
		return never
	}
}

// Calls that are kept open until their deadline say nothing of the load of the backend:
// they stay at the in-flight limit, or at what the callers send if that is less.
func TestKeptOpenCallsAreNotThrottled(t *testing.T) {
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		trial

		sent   float64 // per second, at least
		flying int     // at least
	}{
		"a limit that is raised": {trial{
			limit: 500, raised: 800, every: 10 * ms, deadline: 20 * time.Second, length: 160 * time.Second, takes: dead,
		}, 39, 798},
		"after calls that were served": {trial{
			limit: 500, raised: 800, every: 10 * ms, deadline: 20 * time.Second, length: 160 * time.Second, takes: hangs(20 * time.Second),
		}, 39, 798},
		"most calls of a method": {trial{
			limit: 1024, every: 10 * ms, deadline: 2 * time.Second, length: 60 * time.Second, takes: share(10),
		}, 98, 178},
		"long polls beside other calls": {trial{
			limit: 1024, every: 50 * ms, deadline: 30 * time.Second, length: 200 * time.Second, takes: share(2),
			route: func(i int) string { return []string{"get", "watch"}[i%2] },
		}, 19.5, 295},
	} {
		t.Run(name, func(t *testing.T) {
			sent, flying := row.run(t)
			if sent < row.sent || flying < row.flying {
				t.Errorf("%.1f calls per second are sent and %d are in flight, want at least %v and %d", sent, flying, row.sent, row.flying)
			}
		})
	}
}

// A backend that is dead or too busy is throttled, whatever the deadlines: nothing else
// explains its timeouts.
func TestTimeoutsAreThrottled(t *testing.T) {
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		trial

		sent float64 // per second, at most
	}{
		"dead from the start":           {trial{limit: 1024, every: 10 * ms, deadline: time.Second, length: 60 * time.Second, takes: dead}, 1.2},
		"dead, and the limit reached":   {trial{limit: 50, every: 10 * ms, deadline: 5 * time.Second, length: 60 * time.Second, takes: dead}, 1.2},
		"dead, with long deadlines":     {trial{limit: 1024, every: 50 * ms, deadline: 20 * time.Second, length: 160 * time.Second, takes: dead}, 1.2},
		"served once, then it hangs":    {trial{limit: 1024, every: 10 * ms, deadline: time.Second, length: 60 * time.Second, takes: hangs(20 * time.Second)}, 1.2},
		"it hangs at 50 times as long":  {trial{limit: 1024, every: 10 * ms, deadline: 5 * time.Second, length: 100 * time.Second, takes: hangs(20 * time.Second)}, 1.2},
		"a queue, first in, first out":  {trial{limit: 4096, every: 5 * ms, deadline: time.Second, length: 60 * time.Second, takes: queue(50, time.Second)}, 120},
		"a processor shared by all":     {trial{limit: 4096, every: 2 * ms, deadline: time.Second, length: 60 * time.Second, takes: shared(50, time.Second)}, 200},
		"one method hangs, others work": {trial{limit: 1024, every: 10 * ms, deadline: time.Second, length: 60 * time.Second, takes: share(2), route: func(i int) string { return []string{"get", "hang"}[i%2] }}, 52},
	} {
		t.Run(name, func(t *testing.T) {
			if sent, _ := row.run(t); sent > row.sent {
				t.Errorf("%.1f calls per second are sent, want at most %v", sent, row.sent)
			}
		})
	}
}

// queue is a backend that serves so many calls per second, in the order in which they
// come. It drops calls that would wait until after the deadline.
func queue(perSecond float64, deadline time.Duration) func(time.Duration, int) time.Duration {
	var busy time.Duration // until then
	return func(at time.Duration, _ int) time.Duration {
		if busy > at+deadline {
			return never
		}
		busy = max(busy, at) + time.Duration(float64(time.Second)/perSecond)
		return busy - at
	}
}

// shared is a backend that works on all calls at once, which are of very different sizes:
// the more there are the longer each takes.
func shared(perSecond float64, deadline time.Duration) func(time.Duration, int) time.Duration {
	var began []time.Duration
	return func(at time.Duration, i int) time.Duration {
		for len(began) > 0 && began[0] < at-deadline/2 {
			began = began[1:]
		}
		began = append(began, at)
		size := []float64{0.1, 0.3, 0.6, 1, 3}[i%5] // of the mean
		return time.Duration(size * float64(len(began)) / perSecond * float64(time.Second))
	}
}
