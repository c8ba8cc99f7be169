package admin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

func stopped(reason retry.Reason, attempts int) error {
	return &retry.Error{Err: errors.New("failed"), Why: errors.New("why"), Reason: reason, Attempts: attempts}
}

// TestKindsAndFates: each event is counted as one kind, and each request has one fate.
func TestKindsAndFates(t *testing.T) {
	const none = -1
	throttled := &spillway.RejectedError{Policy: "throttle"}
	for _, row := range []struct {
		event           spillway.Event
		policy, outcome string
		reason          string
		fate            int
	}{
		{spillway.Event{Policy: "shed", Outcome: spillway.Served}, "shed", "admitted", "", none},
		{spillway.Event{Policy: "shed", Outcome: spillway.Abandoned}, "shed", "abandoned", "left", none},
		{rejected("shed", spillway.Enforce, outranked), "shed", "refused", "outranked", fateRefused},
		{rejected("shed", spillway.Enforce, fmt.Errorf("x: %w", crowded)), "shed", "refused", "crowded", fateRefused},
		{rejected("shed", spillway.Observe, crowded), "shed", "refused", "crowded", fateIngressWould},
		{spillway.Event{Policy: "shed", Refused: true}, "shed", "refused", "other", fateRefused},
		{spillway.Event{Policy: "ratelimit", Refused: true, Err: errors.New("x")}, "ratelimit", "refused", "rate", fateRefused},
		{spillway.Event{Policy: "quota", Refused: true}, "quota", "refused", "quota", fateRefused},
		{rejected("batch", spillway.Enforce, &spillway.RejectedError{Reason: spillway.ReasonQueueFull}), "batch", "refused", "queue_full", fateWithheld},
		{rejected("batch", spillway.Enforce, &spillway.RejectedError{Reason: spillway.ReasonMaxWait}), "batch", "refused", "turn_late", fateWithheld},
		{spillway.Event{Policy: "batch", Outcome: spillway.Served}, "batch", "admitted", "", none},
		{spillway.Event{Policy: "batch", Outcome: spillway.TimedOut, Err: context.DeadlineExceeded}, "batch", "late", "deadline", fateLate},
		{spillway.Event{Policy: "batch", Outcome: spillway.Abandoned, Err: context.Canceled}, "batch", "abandoned", "left", fateLeft},
		{spillway.Event{Policy: "throttle", Refused: true, Err: throttled}, "throttle", "refused", "probability", none}, // the end of the call tells
		{spillway.Event{Policy: "throttle", Refused: true, Err: throttled, Mode: spillway.Observe}, "throttle", "refused", "probability", fateEgressWould},
		{spillway.Event{Policy: "inflight", Outcome: spillway.TimedOut}, "inflight", "late", "deadline", none},
		{spillway.Event{Policy: "retry", Outcome: spillway.Served}, "retry", "admitted", "", fateServed},
		{spillway.Event{Policy: "retry", Outcome: spillway.TimedOut, Err: stopped(retry.ReasonAttempts, 3)}, "retry", "late", "deadline", fateLate},
		{spillway.Event{Policy: "retry", Outcome: spillway.Failed, Err: errors.New("x")}, "retry", "failed", "failed", fateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.Overloaded}, "retry", "failed", "overloaded", fateDeclined},
		{spillway.Event{Policy: "retry", Outcome: spillway.Failed, Err: stopped(retry.ReasonBudget, 1)}, "retry", "failed", "budget", fateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.Overloaded, Err: stopped(retry.ReasonAttempts, 3)}, "retry", "failed", "attempts", fateDeclined},
		{spillway.Event{Policy: "retry", Outcome: spillway.Failed, Err: stopped(retry.ReasonAttempts, 1)}, "retry", "failed", "failed", fateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.Overloaded, Err: stopped(retry.ReasonRetryAfter, 1)}, "retry", "failed", "retry_after", fateDeclined},
		{spillway.Event{Policy: "retry", Outcome: spillway.Failed, Err: stopped(retry.ReasonDeadline, 1)}, "retry", "failed", "no_time", fateFailed},
		{spillway.Event{Policy: "retry", Outcome: spillway.Abandoned, Err: throttled}, "retry", "abandoned", "left", fateWithheld},
		{spillway.Event{Policy: "retry", Outcome: spillway.Abandoned, Err: context.Canceled}, "retry", "abandoned", "left", fateLeft},
		{spillway.Event{Policy: "a new one", Outcome: 77}, "other", "failed", "failed", none},
	} {
		var c Collector
		row.event.Call.Criticality = spillway.SheddablePlus
		c.Observe(row.event)
		all := c.read()
		mode := min(int(row.event.Mode), 1)
		for m := range all.events {
			for k, classes := range all.events[m] {
				want := [spillway.Criticalities]uint64{}
				if m == mode && kinds[k] == (kind{row.policy, row.outcome, row.reason}) {
					want[1] = 1
				}
				if classes != want {
					t.Errorf("%+v: %v is counted as %v, want %v", row.event, kinds[k], classes, want)
				}
			}
		}
		for fate, classes := range all.fates {
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

// TestByEnd: of a call that meets the gates once for each attempt, and may be refused
// each time, the end tells the fate.
func TestByEnd(t *testing.T) {
	var c Collector
	c.ByEnd("mongo", "more")
	served := spillway.Event{Policy: "retry", Outcome: spillway.Served, Latency: time.Millisecond}
	say := func(e spillway.Event, key string, attempt int32) {
		e.Call.Key, e.Call.Attempt = key, attempt
		c.Observe(e)
	}
	shed := rejected("shed", spillway.Enforce, crowded)
	observed := shed
	observed.Mode = spillway.Observe
	end := spillway.Event{Policy: "retry", Outcome: spillway.Abandoned, Err: crowded}
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
	all, want := c.read(), [fateCount]uint64{fateServed: 5, fateRefused: 3, fateWithheld: 2, fateIngressWould: 2}
	for fate, n := range want {
		if got := all.fates[fate][2]; got != n {
			t.Errorf("fate %d has %d, want %d", fate, got, n)
		}
	}
	if all.latency.total() != 5 || all.retries != 6 || len(c.decisions(99)) != 13 {
		t.Errorf("%d latencies, %d retries, %d decisions", all.latency.total(), all.retries, len(c.decisions(99)))
	}
}

// TestNoLatency: a latency that nobody gives is none.
func TestNoLatency(t *testing.T) {
	var c Collector
	c.Observe(spillway.Event{Policy: "retry", Outcome: spillway.Served})
	if all := c.read(); all.latency.total() != 0 || all.fates[fateServed][2] != 1 {
		t.Errorf("%d latencies, %d served", all.latency.total(), all.fates[fateServed][2])
	}
}

func TestKindsAreDistinct(t *testing.T) {
	seen := make(map[kind]bool)
	for _, k := range kinds {
		if seen[k] || k.policy == "" || k.words() == "" {
			t.Errorf("%+v is there twice, or not at all", k)
		}
		seen[k] = true
	}
	if kindsFrom[otherPolicy]+plainKinds+len(rejections[otherPolicy]) != kindCount {
		t.Error("kindCount is not the number of kinds")
	}
	for i, name := range policies {
		if policyOf(name) != i {
			t.Errorf("policyOf(%q) is %d, want %d", name, policyOf(name), i)
		}
	}
}

// TestEveryReasonHasAKind: each reason of a rejection is counted apart by some policy.
func TestEveryReasonHasAKind(t *testing.T) {
	for why := spillway.ReasonNone; ; why++ {
		if _, err := why.MarshalText(); err != nil {
			break // there are no more
		}
		found := false
		for _, all := range rejections {
			found = found || slices.ContainsFunc(all, func(x rejection) bool { return x.why == why })
		}
		if !found {
			t.Errorf("%v has no row", why)
		}
	}
}

// TestCollectorAgainstModel feeds many goroutines' events of all sorts to a Collector
// and to a naive model.
func TestCollectorAgainstModel(t *testing.T) {
	type cell struct {
		mode, kind, class int
	}
	var (
		c       Collector
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
					Policy: append(policies[:], "else")[r.IntN(len(policies)+1)], Outcome: spillway.Outcome(r.IntN(7)), Refused: r.IntN(3) == 0,
					Mode: spillway.Mode(r.IntN(2)), Latency: time.Duration(r.Int64N(1e9)),
					Call: spillway.Call{Criticality: spillway.Criticality(r.IntN(6) - 3), Attempt: int32(r.IntN(4))},
					Err:  []error{nil, outranked, crowded, context.Canceled, stopped(retry.ReasonBudget, 1)}[r.IntN(5)],
				}
				if e.Refused {
					e.Reason = spillway.Reason(r.IntN(12))
				}
				c.Observe(e)
				mu.Lock()
				model[cell{int(e.Mode), kindOf(&e), e.Call.Criticality.Index()}]++
				if e.Policy == "retry" && !e.Refused {
					retried += uint64(e.Call.Attempt)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	got := c.read()
	sum := uint64(0)
	for mode := range got.events {
		for k := range got.events[mode] {
			for class, n := range got.events[mode][k] {
				sum += n
				if want := model[cell{mode, k, class}]; n != want {
					t.Errorf("%v of class %d in mode %d: %d, want %d", kinds[k], class, mode, n, want)
				}
			}
		}
	}
	if sum != 8000 || got.retries != retried {
		t.Errorf("%d events and %d retries, want 8000 and %d", sum, got.retries, retried)
	}
	if n := len(c.decisions(1000)); n != keptDecisions {
		t.Errorf("%d refusals are kept, want %d", n, keptDecisions)
	}
}

func TestDecisionsAreTheLast(t *testing.T) {
	var c Collector
	if got := c.decisions(5); len(got) != 0 {
		t.Errorf("%d decisions of none", len(got))
	}
	for i := range keptDecisions + 10 {
		c.Observe(spillway.Event{Policy: "shed", Refused: true, Call: spillway.Call{Attempt: int32(i)}})
	}
	got := c.decisions(3)
	if len(got) != 3 || got[0].Call.Attempt != keptDecisions+9 || got[2].Call.Attempt != keptDecisions+7 {
		t.Errorf("%+v", got)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := new(Collector)
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
		"admitted": {Time: now, Call: call, Policy: "shed", Outcome: spillway.Served, Latency: time.Millisecond},
		"served":   {Time: now, Call: call, Policy: "retry", Outcome: spillway.Served, Latency: time.Millisecond},
		"refused":  {Time: now, Call: call, Policy: "shed", Refused: true, Err: outranked},
		"withheld": {Time: now, Call: call, Policy: "retry", Outcome: spillway.Abandoned, Err: outranked},
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, e := range benchEvents() {
		b.Run(name, func(b *testing.B) {
			c := new(Collector)
			b.ReportAllocs()
			for b.Loop() {
				c.Observe(e)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			c := new(Collector)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.Observe(e)
				}
			})
		})
	}
}
