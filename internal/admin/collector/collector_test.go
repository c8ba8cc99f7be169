package collector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/retry"
)

// rejected returns the event of a rejection.
func rejected(policy string, mode spillway.Mode, err error) spillway.Event {
	e := spillway.Rejection(err)
	e.Policy, e.Mode = policy, mode
	return e
}

var (
	errHigherClass = &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonHigherClass}
	errQueueFull   = &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull}
)

func stopped(reason retry.Reason, attempts int) error {
	return &retry.Error{Err: errors.New("failed"), Why: errors.New("why"), Reason: reason, Attempts: attempts}
}

// TestKinds: each event is counted as one kind. What gates that observe would reject is counted by side.
func TestKinds(t *testing.T) {
	const none, server, client = -1, 0, 1 // sides
	throttled := &spillway.RejectedError{Policy: "throttle", Reason: spillway.ReasonThrottle}
	for _, row := range []struct {
		event           spillway.Event
		policy, outcome string
		reason          string
		would           int
	}{
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeServed}, "shed", "admitted", "", none},
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeAbandoned}, "shed", "abandoned", "client_gone", none},
		{rejected("shed", spillway.ModeEnforce, errHigherClass), "shed", "rejected", "higher_class", none},
		{rejected("shed", spillway.ModeEnforce, fmt.Errorf("x: %w", errQueueFull)), "shed", "rejected", "queue_full", none},
		{rejected("shed", spillway.ModeObserve, errQueueFull), "shed", "rejected", "queue_full", server},
		{spillway.Event{Policy: "shed", Rejected: true}, "shed", "rejected", "other", none},
		{spillway.Event{Policy: "ratelimit", Rejected: true, Err: errors.New("x")}, "ratelimit", "rejected", "other", none},
		{spillway.Event{Policy: "quota", Rejected: true}, "quota", "rejected", "other", none},
		{rejected("batch", spillway.ModeEnforce, &spillway.RejectedError{Reason: spillway.ReasonQueueFull}), "batch", "rejected", "queue_full", none},
		{rejected("batch", spillway.ModeEnforce, &spillway.RejectedError{Reason: spillway.ReasonMaxWait}), "batch", "rejected", "max_wait", none},
		{spillway.Event{Policy: "batch", Outcome: spillway.OutcomeServed}, "batch", "admitted", "", none},
		{spillway.Event{Policy: "batch", Outcome: spillway.OutcomeTimedOut, Err: context.DeadlineExceeded}, "batch", "late", "deadline", none},
		{spillway.Event{Policy: "batch", Outcome: spillway.OutcomeAbandoned, Err: context.Canceled}, "batch", "abandoned", "client_gone", none},
		{rejected("throttle", spillway.ModeEnforce, throttled), "throttle", "rejected", "throttle", none},
		{rejected("throttle", spillway.ModeObserve, throttled), "throttle", "rejected", "throttle", client},
		{spillway.Event{Policy: "inflight", Outcome: spillway.OutcomeTimedOut}, "inflight", "late", "deadline", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed}, "retry", "admitted", "", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeTimedOut, Err: stopped(retry.ReasonAttempts, 3)}, "retry", "late", "deadline", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: errors.New("x")}, "retry", "failed", "failed", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded}, "retry", "failed", "overloaded", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stopped(retry.ReasonBudget, 1)}, "retry", "failed", "budget", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded, Err: stopped(retry.ReasonAttempts, 3)}, "retry", "failed", "attempts", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stopped(retry.ReasonAttempts, 1)}, "retry", "failed", "failed", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded, Err: stopped(retry.ReasonRetryAfter, 1)}, "retry", "failed", "retry_after", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stopped(retry.ReasonDeadline, 1)}, "retry", "failed", "no_time", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: throttled}, "retry", "abandoned", "other_policy", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: context.Canceled}, "retry", "abandoned", "client_gone", none},
		{spillway.Event{Policy: "a new one", Outcome: 77}, "other", "failed", "failed", none},
	} {
		c := New()
		row.event.Call.Criticality = spillway.SheddablePlus
		c.Observe(row.event)
		all, _ := c.Read()
		mode := min(int(row.event.Mode), 1)
		for m := range all.Events {
			for i, classes := range all.Events[m] {
				k := telemetry.Kind(i)
				want := [spillway.Criticalities]uint64{}
				if m == mode && [3]string{k.Policy(), k.Outcome(), k.Reason()} == [3]string{row.policy, row.outcome, row.reason} {
					want[1] = 1
				}
				if classes != want {
					t.Errorf("%+v: %v is counted as %v, want %v", row.event, k, classes, want)
				}
			}
		}
		for side, classes := range all.Would {
			want := [spillway.Criticalities]uint64{}
			if side == row.would {
				want[1] = 1
			}
			if classes != want {
				t.Errorf("%+v: gates of the %s would reject %v, want %v", row.event, sides[side], classes, want)
			}
		}
	}
}

// TestByEnd: a call may pass through the gates once for each attempt, and be rejected each
// time. What observing gates would have rejected is counted at its first attempt.
func TestByEnd(t *testing.T) {
	c := New()
	c.ByEnd("mongo", "more")
	say := func(e spillway.Event, key string, attempt int16) {
		e.Call.Key, e.Call.Attempt = key, attempt
		c.Observe(e)
	}
	served := spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed, Latency: time.Millisecond}
	for _, key := range []string{"mongo", "more", "web"} { // of the last one, the attempts are the client's
		say(rejected("shed", spillway.ModeEnforce, errQueueFull), key, 0)
		say(rejected("shed", spillway.ModeObserve, errQueueFull), key, 0)
		say(rejected("shed", spillway.ModeObserve, errQueueFull), key, 1)
		say(served, key, 1)
		say(spillway.Event{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: errQueueFull}, key, 1)
	}
	all, _ := c.Read()
	if got := all.Would[0][2]; got != 4 {
		t.Errorf("%d would be rejected, want 4", got)
	}
	if all.Latency[0].Total() != 3 || all.Retries != 6 {
		t.Errorf("%d latencies, %d retries", all.Latency[0].Total(), all.Retries)
	}
}

// TestNoLatency: an event without a latency is not counted as a latency of 0.
func TestNoLatency(t *testing.T) {
	c := New()
	c.Observe(spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed})
	if all, _ := c.Read(); all.Latency[0].Total() != 0 {
		t.Errorf("%d latencies", all.Latency[0].Total())
	}
}

// TestCollectorAgainstModel feeds many goroutines' events of all sorts to a Collector
// and to a naive model.
func TestCollectorAgainstModel(t *testing.T) {
	type cell struct {
		mode, kind, class int
	}
	var (
		c       = New()
		mu      sync.Mutex
		model   = make(map[cell]uint64)
		retried uint64
		all     sync.WaitGroup
	)
	for seed := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 2000 {
				e := spillway.Event{
					Policy: append(telemetry.Policies[:], "else")[r.IntN(len(telemetry.Policies)+1)], Outcome: spillway.Outcome(r.IntN(7)), Rejected: r.IntN(3) == 0,
					Mode: spillway.Mode(r.IntN(2)), Latency: time.Duration(r.Int64N(1e9)),
					Call: spillway.Call{Criticality: spillway.Criticality(r.IntN(6) - 3), Attempt: int16(r.IntN(4))},
					Err:  []error{nil, errHigherClass, errQueueFull, context.Canceled, stopped(retry.ReasonBudget, 1)}[r.IntN(5)],
				}
				if e.Rejected {
					e.Reason = spillway.Reason(r.IntN(12))
				}
				c.Observe(e)
				mu.Lock()
				model[cell{int(e.Mode), int(telemetry.KindOf(&e)), e.Call.Criticality.Index()}]++
				if e.Policy == "retry" && !e.Rejected {
					retried += uint64(e.Call.Attempt)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	got, _ := c.Read()
	sum := uint64(0)
	for mode := range got.Events {
		for k := range got.Events[mode] {
			for class, n := range got.Events[mode][k] {
				sum += n
				if want := model[cell{mode, k, class}]; n != want {
					t.Errorf("%v of class %d in mode %d: %d, want %d", telemetry.Kind(k), class, mode, n, want)
				}
			}
		}
	}
	if sum != 8000 || got.Retries != retried {
		t.Errorf("%d events and %d retries, want 8000 and %d", sum, got.Retries, retried)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := New()
	for name, e := range benchEvents() {
		if n := testing.AllocsPerRun(100, func() { c.Observe(e) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func benchEvents() map[string]spillway.Event {
	now := time.Now()
	call := spillway.Call{Key: "web", Deadline: now.Add(time.Second)}
	return map[string]spillway.Event{
		"admitted": {Time: now, Call: call, Policy: "shed", Outcome: spillway.OutcomeServed, Latency: time.Millisecond},
		"served":   {Time: now, Call: call, Policy: "retry", Outcome: spillway.OutcomeServed, Latency: time.Millisecond},
		"rejected": {Time: now, Call: call, Policy: "shed", Rejected: true, Err: errHigherClass},
		"withheld": {Time: now, Call: call, Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: errHigherClass},
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, e := range benchEvents() {
		b.Run(name, func(b *testing.B) {
			c := New()
			b.ReportAllocs()
			for b.Loop() {
				c.Observe(e)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			c := New()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.Observe(e)
				}
			})
		})
	}
}
