package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

func stop(why retry.Reason, attempts int) error {
	return &retry.Error{Err: errors.New("x"), Why: &retry.NotRetriedError{Reason: why}, Reason: why, Attempts: attempts}
}

func TestKindOf(t *testing.T) {
	rejected := fmt.Errorf("x: %w", &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull})
	for _, row := range []struct {
		e    spillway.Event
		want string
	}{
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeServed}, "shed/admitted/"},
		{spillway.Event{Policy: "quota", Outcome: spillway.OutcomeTimedOut}, "quota/admitted/"},
		{spillway.Event{Policy: "ratelimit", Outcome: spillway.OutcomeAbandoned}, "ratelimit/abandoned/client_gone"},
		{spillway.Event{Policy: "inflight", Outcome: spillway.OutcomeTimedOut}, "inflight/late/deadline"},
		{spillway.Event{Policy: "throttle", Outcome: spillway.OutcomeOverloaded}, "throttle/failed/overloaded"},
		{spillway.Event{Policy: "inflight", Outcome: spillway.OutcomeOverQuota}, "inflight/failed/over_quota"},
		{spillway.Event{Policy: "inflight", Outcome: spillway.OutcomeFailed, Err: stop(retry.ReasonBudget, 2)}, "inflight/failed/failed"},
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeAbandoned, Err: context.Canceled}, "shed/abandoned/client_gone"},
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeAbandoned}, "shed/abandoned/client_gone"},
		{spillway.Event{Policy: "inflight", Outcome: spillway.OutcomeNotStarted, Err: rejected}, "inflight/abandoned/other_policy"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeNotStarted, Err: rejected}, "retry/abandoned/other_policy"},
		{spillway.Event{Policy: "quota", Outcome: spillway.OutcomeNotStarted}, "quota/admitted/"},
		{spillway.Event{Policy: "shed", Outcome: spillway.OutcomeNotStarted}, "shed/abandoned/other_policy"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed}, "retry/failed/failed"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stop(retry.ReasonBudget, 1)}, "retry/failed/budget"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stop(retry.ReasonAttempts, 3)}, "retry/failed/attempts"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded, Err: stop(retry.ReasonAttempts, 1)}, "retry/failed/overloaded"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverloaded, Err: stop(retry.ReasonRetryAfter, 1)}, "retry/failed/retry_after"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverQuota, Err: stop(retry.ReasonDeadline, 2)}, "retry/failed/no_time"},
		{spillway.Event{Policy: "retry", Outcome: spillway.OutcomeOverQuota, Err: stop(retry.ReasonNotRetryable, 1)}, "retry/failed/over_quota"},
		{spillway.Event{Policy: "retry", Rejected: true, Reason: spillway.ReasonQuota}, "retry/failed/other"},
		{spillway.Event{Policy: "mine", Rejected: true}, "other/rejected/other"},
		{spillway.Event{Policy: "mine", Rejected: true, Reason: 200}, "other/rejected/other"},
		{spillway.Event{}, "other/failed/failed"},
	} {
		k := KindOf(&row.e)
		if got := k.Policy() + "/" + k.Outcome() + "/" + k.Reason(); got != row.want {
			t.Errorf("%+v: got %q, want %q", row.e, got, row.want)
		}
	}
	for why := spillway.ReasonNone + 1; why <= spillway.ReasonFairShare; why++ {
		k := KindOf(&spillway.Event{Policy: "shed", Rejected: true, Reason: why})
		if k.Outcome() != "rejected" || k.Reason() != why.String() {
			t.Errorf("%v: got %q %q", why, k.Outcome(), k.Reason())
		}
	}
}

// TestReasons fails where a Reason was added that has no kind.
func TestReasons(t *testing.T) {
	if next := spillway.ReasonFairShare + 1; !strings.HasPrefix(next.String(), "Reason(") {
		t.Errorf("%v has no code: end the codes with it", next)
	}
}

// TestAdvice: each reason has advice, and no advice lacks a reason.
func TestAdvice(t *testing.T) {
	used := make(map[string]bool)
	for k := range Kind(Kinds) {
		used[k.Reason()] = true
		if (Advice(k) == "") != (k.Code() == Admitted) {
			t.Errorf("advice for %s is %q", k.Reason(), Advice(k))
		}
	}
	for reason := range advice {
		if !used[reason] {
			t.Errorf("advice for %s, which is no reason", reason)
		}
	}
}

// TestKindsDiffer: no two kinds that events can have share their labels.
func TestKindsDiffer(t *testing.T) {
	seen := make(map[string]Kind)
	for k := range Kind(Kinds) {
		if k.Reason() == "other" {
			continue
		}
		labels := k.Policy() + " " + k.Outcome() + " " + k.Reason()
		if other, ok := seen[labels]; ok {
			t.Errorf("%d and %d are both %q", other, k, labels)
		}
		seen[labels] = k
	}
}

func TestCounts(t *testing.T) {
	var c Counts
	for range 3 {
		c.Add(&spillway.Event{Policy: "throttle", Rejected: true, Reason: spillway.ReasonThrottle, Mode: spillway.ModeObserve, Call: spillway.Call{Criticality: spillway.Sheddable}})
	}
	var totals Totals
	c.Read(&totals)
	got := make(map[string]uint64)
	totals.Each(func(mode spillway.Mode, k Kind, class spillway.Criticality, n uint64) {
		got[fmt.Sprint(mode, " ", k.Policy(), " ", k.Outcome(), " ", k.Reason(), " ", class)] = n
	})
	if len(got) != 2 || // and the start of what is admitted of the same class
		got["observe throttle rejected throttle SHEDDABLE"] != 3 {
		t.Errorf("got %v", got)
	}
}

func TestAllocs(t *testing.T) {
	var c Counts
	e := spillway.Event{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: stop(retry.ReasonBudget, 2)}
	r := spillway.Rejection(&spillway.RejectedError{Reason: spillway.ReasonQuota})
	if n := testing.AllocsPerRun(100, func() { c.Add(&e); c.Add(&r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
