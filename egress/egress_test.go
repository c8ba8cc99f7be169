package egress_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// overloaded is the answer of a backend that has no room.
type overloaded struct{}

func (overloaded) Error() string                   { return "backend: overloaded" }
func (overloaded) RetrySafety() fault.Safety       { return fault.RetrySafe }
func (overloaded) Throttle() bool                  { return true }
func (overloaded) Fault() fault.Party              { return fault.Server }
func works(context.Context, *egress.Attempt) error { return nil }

var errBackend = errors.New("backend: broken")

func must(t testing.TB, c egress.Config) *egress.Client {
	t.Helper()
	client, err := egress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// events records the events of an observer.
type events struct {
	mu  sync.Mutex
	all []spillway.Event
}

func (e *events) Observe(ev spillway.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

// trace spells the events of a call in one line.
func (e *events) trace() string {
	var words []string
	for _, ev := range e.all {
		word := ev.Outcome.String()
		if ev.Rejected {
			word = "rejected"
			if ev.Mode == spillway.ModeObserve {
				word = "would reject"
			}
		}
		words = append(words, ev.Policy+" "+word)
	}
	return strings.Join(words, ", ")
}

func TestEachPolicyReportsEachAttemptOnce(t *testing.T) {
	full := func() *inflight.Limiter {
		l, err := inflight.New(inflight.Config{MaxInFlight: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.TryAcquire()
		return l
	}
	for name, row := range map[string]struct {
		config egress.Config
		send   func(context.Context, *egress.Attempt) error
		want   string
	}{
		"success": {egress.Config{}, works, "throttle served, inflight served, retry served"},
		"failure": {
			egress.Config{}, func(context.Context, *egress.Attempt) error { return errBackend },
			"throttle failed, inflight failed, retry failed",
		},
		"no place in flight": {
			egress.Config{InFlight: full()}, works,
			"inflight rejected, throttle not started, retry not started",
		},
		"no place in flight, observed": {
			egress.Config{InFlight: full(), InFlightMode: spillway.ModeObserve}, works,
			"inflight would reject, throttle served, retry served",
		},
		"no place in flight, off": {
			egress.Config{InFlight: full(), InFlightMode: spillway.ModeOff}, works,
			"throttle served, retry served",
		},
		"throttle off": {egress.Config{ThrottleMode: spillway.ModeOff}, works, "inflight served, retry served"},
		"a hung backend": {
			egress.Config{}, func(context.Context, *egress.Attempt) error { return context.DeadlineExceeded },
			"throttle timed out, inflight timed out, retry timed out",
		},
		"a caller that left": {
			egress.Config{}, func(context.Context, *egress.Attempt) error { return context.Canceled },
			"throttle abandoned, inflight abandoned, retry abandoned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var e events
			row.config.Observer = &e
			err := must(t, row.config).Do(t.Context(), spillway.Call{Key: "users"}, row.send)
			if got := e.trace(); got != row.want {
				t.Errorf("events: %s\nwant:   %s\nerror:  %v", got, row.want, err)
			}
			for _, ev := range e.all {
				if ev.Time.IsZero() || ev.Call.Key != "users" {
					t.Errorf("event without time or key: %+v", ev)
				}
			}
		})
	}
}

func TestRetriesGoThroughTheGatesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		strategy, err := retry.NewAWSStandard(retry.AWSStandardConfig{})
		if err != nil {
			t.Fatal(err)
		}
		client := must(t, egress.Config{Retry: strategy, Observer: &e})
		attempts := 0
		err = client.Do(t.Context(), spillway.Call{}, func(_ context.Context, a *egress.Attempt) error {
			if a.Number != attempts {
				t.Errorf("attempt %d says that it is number %d", attempts, a.Number)
			}
			if got := client.Stats(time.Now()).InFlight.InFlight; got != 1 {
				t.Errorf("%d in flight during an attempt", got)
			}
			attempts++
			if attempts < 3 {
				return overloaded{}
			}
			return nil
		})
		if err != nil || attempts != 3 {
			t.Fatalf("%d attempts, %v", attempts, err)
		}
		want := "throttle overloaded, inflight overloaded, throttle overloaded, inflight overloaded, " +
			"throttle served, inflight served, retry served"
		if got := e.trace(); got != want {
			t.Errorf("events: %s\nwant:   %s", got, want)
		}
	})
}

func TestThrottleLearnsAndRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := must(t, egress.Config{Throttle: throttle.Config{Rand: func() float64 { return 0 }}})
		sent := 0
		var err error
		for range 100 {
			err = client.Do(t.Context(), spillway.Call{}, func(context.Context, *egress.Attempt) error {
				sent++
				return overloaded{}
			})
		}
		if sent > 20 {
			t.Errorf("%d attempts sent to a backend that accepts none", sent)
		}
		if !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("the last error is no local rejection: %v", err)
		}
		ctx := spillway.WithCriticality(t.Context(), spillway.CriticalPlus)
		if err := client.Do(ctx, spillway.Call{}, works); err != nil {
			t.Errorf("another criticality is rejected too: %v", err)
		}
	})
}

func TestInflightRejectionTeachesTheThrottleNothing(t *testing.T) {
	client := must(t, egress.Config{MaxInFlight: 1})
	release, done := make(chan struct{}), make(chan error)
	started := make(chan struct{})
	go func() {
		done <- client.Do(context.Background(), spillway.Call{}, func(context.Context, *egress.Attempt) error {
			close(started)
			<-release
			return nil
		})
	}()
	<-started
	for range 1000 {
		if err := client.Do(t.Context(), spillway.Call{}, works); !errors.Is(err, spillway.ErrRejected) {
			t.Fatalf("admitted beyond the limit: %v", err)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s := client.Stats(time.Now())
	if c := s.Throttle[spillway.Critical.Index()]; c.Requests != 1 || c.Probability != 0 {
		t.Errorf("the throttle learnt %+v from rejections that were made here", c)
	}
	if s.InFlight.InFlight != 0 || s.InFlight.RejectedTotal != 1000 {
		t.Errorf("afterwards: %+v", s.InFlight)
	}
}

func TestHoldKeepsThePlaceInFlight(t *testing.T) {
	client := must(t, egress.Config{})
	var held inflight.Hold
	err := client.Do(t.Context(), spillway.Call{}, func(ctx context.Context, a *egress.Attempt) error {
		a.Hold(ctx, &held)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := client.Stats(time.Now()).InFlight.InFlight; n != 1 {
		t.Errorf("%d in flight while the answer goes on, want 1", n)
	}
	held.End()
	held.End()
	if n := client.Stats(time.Now()).InFlight.InFlight; n != 0 {
		t.Errorf("%d in flight after the answer has ended", n)
	}
}

func TestDeadlineAndCriticalityComeFromTheContext(t *testing.T) {
	var e events
	client := must(t, egress.Config{Observer: &e})
	soon := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(spillway.WithCriticality(t.Context(), spillway.SheddablePlus), soon)
	defer cancel()
	for _, call := range []spillway.Call{{}, {Deadline: soon.Add(time.Hour)}, {Deadline: soon.Add(-time.Second)}} {
		if err := client.Do(ctx, call, works); err != nil {
			t.Fatal(err)
		}
		want := soon
		if !call.Deadline.IsZero() && call.Deadline.Before(soon) {
			want = call.Deadline
		}
		got := e.all[len(e.all)-1].Call
		if !got.Deadline.Equal(want) || got.Criticality != spillway.SheddablePlus {
			t.Errorf("deadline %v, criticality %v; want %v, SHEDDABLE_PLUS", got.Deadline, got.Criticality, want)
		}
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	l, err := inflight.New(inflight.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]egress.Config{
		"Throttle.K is 1":             {Throttle: throttle.Config{K: 1}},
		"MaxInFlight is 7, must be 0": {MaxInFlight: 7, InFlight: l},
		"ThrottleMode is Mode(9)":     {ThrottleMode: 9},
		"InFlightMode is Mode(3)":     {InFlightMode: 3},
		"pays for no hedges":          {Hedge: retry.HedgeConfig{Delay: time.Second}, Retry: struct{ retry.Strategy }{}},
	} {
		client, err := egress.New(c)
		if client != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error with %q", err, want)
		}
	}
	// An int of 32 bits has no value out of range.
	if _, err := egress.New(egress.Config{MaxInFlight: math.MaxInt}); (err == nil) != (math.MaxInt == math.MaxInt32) {
		t.Errorf("MaxInFlight of %d: %v", math.MaxInt, err)
	}
	if _, err := egress.NewPool(egress.Config{}, -1); err == nil {
		t.Error("a pool of -1 backends was made")
	}
	if _, err := egress.NewPool(egress.Config{Throttle: throttle.Config{K: 1}}, 0); err == nil {
		t.Error("a pool of wrong clients was made")
	}
}

func TestPoolIsBounded(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	busy := pool.For("busy")
	var held inflight.Hold
	if err := busy.Do(t.Context(), spillway.Call{}, func(ctx context.Context, a *egress.Attempt) error {
		a.Hold(ctx, &held)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if pool.For("busy") != busy {
		t.Error("the same backend has two clients")
	}
	for i := range 1000 {
		if pool.For(strings.Repeat("x", i)) == nil {
			t.Fatal("no client")
		}
		if n := len(pool.Stats(time.Now())); n > 3 {
			t.Fatalf("%d clients in a pool of 3", n)
		}
	}
	if pool.For("busy") != busy {
		t.Error("a client with calls in flight was let go before idle ones")
	}
	held.End()
}

func TestConcurrentUseLeavesNothing(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{MaxInFlight: 4}, 2)
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Int64
	var wg sync.WaitGroup
	keys := []string{"a", "b"}
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%5 == 0 {
					cancel()
				}
				c := pool.For(keys[(i+w)%2])
				_ = c.Do(ctx, spillway.Call{}, func(context.Context, *egress.Attempt) error {
					if c.Stats(time.Now()).InFlight.InFlight > 4 {
						over.Add(1)
					}
					if i%3 == 0 {
						return errBackend
					}
					return ctx.Err()
				})
				cancel()
			}
		})
	}
	wg.Wait()
	for key, s := range pool.Stats(time.Now()) {
		if s.InFlight.InFlight != 0 || s.InFlight.SurplusTotal != 0 {
			t.Errorf("%s: %+v", key, s.InFlight)
		}
	}
	if over.Load() > 0 {
		t.Errorf("%d times above the limit", over.Load())
	}
}
