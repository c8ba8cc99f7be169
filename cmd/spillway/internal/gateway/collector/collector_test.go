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
	outranked = &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonHigherClass}
	crowded   = &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull}
)

func stopped(reason retry.Reason, attempts int) error {
	return &retry.Error{Err: errors.New("failed"), Why: errors.New("why"), Reason: reason, Attempts: attempts}
}

// TestKindsAndFates: each event is counted as one kind, and each request has one fate.
func TestKindsAndFates(t *testing.T) {
	const none = -1
	throttled := &spillway.RejectedError{Policy: "throttle", Reason: spillway.ReasonThrottle}
	for _, row := range []struct {
		event           spillway.Event
		policy, outcome string
		reason          string
		fate            int
	}{
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeServed}, "shed", "admitted", "", none},
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeAbandoned}, "shed", "abandoned", "client_gone", none},
		{rejected("shed", spillway.ModeEnforce, outranked), "shed", "rejected", "higher_class", FateRejected},
		{rejected("shed", spillway.ModeEnforce, fmt.Errorf("x: %w", crowded)), "shed", "rejected", "queue_full", FateRejected},
		{rejected("shed", spillway.ModeObserve, crowded), "shed", "rejected", "queue_full", FateIngressWould},
		{spillway.Event{Policy: "shed", Rejected: true}, "shed", "rejected", "other", FateRejected},
		{spillway.Event{Policy: "ratelimit", Rejected: true, Err: errors.New("x")}, "ratelimit", "rejected", "other", FateRejected},
		{spillway.Event{Policy: "quota", Rejected: true}, "quota", "rejected", "other", FateRejected},
		{rejected("batch", spillway.ModeEnforce, &spillway.RejectedError{Reason: spillway.ReasonQueueFull}), "batch", "rejected", "queue_full", FateWithheld},
		{rejected("batch", spillway.ModeEnforce, &spillway.RejectedError{Reason: spillway.ReasonMaxWait}), "batch", "rejected", "max_wait", FateWithheld},
		{spillway.Event{Policy: "batch", Outcome: spillway.OutcomeServed}, "batch", "admitted", "", none},
		{spillway.Event{Policy: "batch", Outcome: spillway.OutcomeTimedOut, Err: context.DeadlineExceeded}, "batch", "late", "deadline", FateLate},
		{spillway.Event{Policy: "batch", Outcome: spillway.OutcomeAbandoned, Err: context.Canceled}, "batch", "abandoned", "client_gone", FateGoneSent},
		{rejected("throttle", spillway.ModeEnforce, throttled), "throttle", "rejected", "throttle", none}, // the end of the call tells
		{rejected("throttle", spillway.ModeObserve, throttled), "throttle", "rejected", "throttle", FateEgressWould},
		{spillway.Event{Policy: "inflight", Outcome: spillway.OutcomeTimedOut}, "inflight", "late", "deadline", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed}, "retry", "admitted", "", FateServed},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeTimedOut, Err: stopped(retry.ReasonAttempts, 3)}, "retry", "late", "deadline", FateLate},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: errors.New("x")}, "retry", "failed", "failed", FateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded}, "retry", "failed", "overloaded", FateRejectedUpstream},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stopped(retry.ReasonBudget, 1)}, "retry", "failed", "budget", FateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded, Err: stopped(retry.ReasonAttempts, 3)}, "retry", "failed", "attempts", FateRejectedUpstream},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stopped(retry.ReasonAttempts, 1)}, "retry", "failed", "failed", FateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded, Err: stopped(retry.ReasonRetryAfter, 1)}, "retry", "failed", "retry_after", FateRejectedUpstream},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stopped(retry.ReasonDeadline, 1)}, "retry", "failed", "no_time", FateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: throttled}, "retry", "abandoned", "other_policy", FateWithheld},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: context.Canceled}, "retry", "abandoned", "client_gone", FateGoneSent},
		{spillway.Event{Policy: "a new one", Outcome: 77}, "other", "failed", "failed", none},
	} {
		c := New()
		row.event.Call.Criticality = spillway.SheddablePlus
		c.Observe(row.event)
		all := c.Read()
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
		for fate, classes := range all.Fates {
			want := [spillway.Criticalities]uint64{}
			if fate == row.fate {
				want[1] = 1
			}
			if classes != want {
				t.Errorf("%+v: fate %d is counted as %v, want %v", row.event, fate, classes, want)
			}
		}
	}
}

// TestByEnd: a call may pass through the gates once for each attempt, and be rejected each
// time. Its fate is the event of its end.
func TestByEnd(t *testing.T) {
	c := New()
	c.ByEnd("mongo", "more")
	served := spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed, Latency: time.Millisecond}
	say := func(e spillway.Event, key string, attempt int32) {
		e.Call.Key, e.Call.Attempt = key, attempt
		c.Observe(e)
	}
	shed := rejected("shed", spillway.ModeEnforce, crowded)
	observed := shed
	observed.Mode = spillway.ModeObserve
	end := spillway.Event{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: crowded}
	for _, key := range []string{"mongo", "more"} {
		say(shed, key, 0) // and let in after that
		say(served, key, 1)
		say(shed, key, 0)
		say(end, key, 0)
		say(shed, key, 0) // and once more
		say(shed, key, 1)
		say(end, key, 1)
		say(observed, key, 0)
		say(observed, key, 1)
		say(served, key, 1)
	}
	say(shed, "web", 0)
	say(served, "web", 0)
	all, want := c.Read(), [fateCount]uint64{FateServed: 5, FateRejected: 3, FateWithheld: 2, FateIngressWould: 2}
	for fate, n := range want {
		if got := all.Fates[fate][2]; got != n {
			t.Errorf("fate %d has %d, want %d", fate, got, n)
		}
	}
	if all.Latency[0].Total() != 5 || all.Retries != 6 {
		t.Errorf("%d latencies, %d retries", all.Latency[0].Total(), all.Retries)
	}
}

// TestNoLatency: an event without a latency is not counted as a latency of 0.
func TestNoLatency(t *testing.T) {
	c := New()
	c.Observe(spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed})
	if all := c.Read(); all.Latency[0].Total() != 0 || all.Fates[FateServed][2] != 1 {
		t.Errorf("%d latencies, %d served", all.Latency[0].Total(), all.Fates[FateServed][2])
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
					Call: spillway.Call{Criticality: spillway.Criticality(r.IntN(6) - 3), Attempt: int32(r.IntN(4))},
					Err:  []error{nil, outranked, crowded, context.Canceled, stopped(retry.ReasonBudget, 1)}[r.IntN(5)],
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
	got := c.Read()
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
	if raceEnabled {
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
		"rejected": {Time: now, Call: call, Policy: "shed", Rejected: true, Err: outranked},
		"withheld": {Time: now, Call: call, Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: outranked},
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
