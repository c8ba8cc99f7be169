package retry_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// TestErrorText: the text says what happened, where, and what to do.
func TestErrorText(t *testing.T) {
	backend := errors.New("503 Service Unavailable")
	for _, test := range []struct {
		err  error
		want string
	}{
		{
			&retry.Error{Err: backend, Why: &retry.NotRetriedError{Reason: retry.ReasonBudget, Tokens: 3, Capacity: 500, Cost: 14}, Attempts: 2},
			"retry: gave up after 2 attempts: not retried: retry budget exhausted: 3 of 500 tokens left, a retry costs 14 (it refills with later calls): last error: 503 Service Unavailable",
		},
		{
			&retry.NotRetriedError{Reason: retry.ReasonBudget, Tokens: .9999, Capacity: 100.5, Cost: 1},
			"not retried: retry budget exhausted: 0.999 of 100.5 tokens left, a retry costs 1 (it refills with later calls)",
		},
		{
			&retry.Error{Err: backend, Why: &retry.NotRetriedError{Reason: retry.ReasonAttempts}, Attempts: 1},
			"retry: gave up after 1 attempt: not retried: no more attempts are allowed (each has failed; see the last error): last error: 503 Service Unavailable",
		},
		{
			&retry.NotRetriedError{Reason: retry.ReasonDeadline, Delay: 4 * time.Second},
			"not retried: the next attempt is due in 4s, too late for the deadline (allow more time)",
		},
		{
			&retry.NotRetriedError{Reason: retry.ReasonDeadline},
			"not retried: the deadline has passed (allow more time)",
		},
		{
			&retry.NotRetriedError{Reason: retry.ReasonRetryAfter, RetryAfter: 24 * time.Hour},
			"not retried: the backend asks to wait 24h0m0s, longer than MaxRetryAfter (try again then)",
		},
		{
			&retry.Error{Err: backend, Why: context.Canceled, Attempts: 3},
			"retry: gave up after 3 attempts: context canceled: last error: 503 Service Unavailable",
		},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%q\nwant %q", got, test.want)
		}
	}
}

func TestReasons(t *testing.T) {
	texts, names := map[string]bool{}, map[string]bool{}
	for r := range retry.Reasons {
		reason := retry.Reason(r)
		text := (&retry.NotRetriedError{Reason: reason}).Error()
		if names[reason.String()] || texts[text] || !strings.HasPrefix(text, "not retried") {
			t.Errorf("reason %d is %q: %q", r, reason, text)
		}
		texts[text], names[reason.String()] = true, true
	}
	unknown := retry.Reason(200)
	if name, text := unknown.String(), (&retry.NotRetriedError{Reason: unknown}).Error(); name != "other" || text != "not retried" {
		t.Errorf("an unknown reason is %q: %q", name, text)
	}
}

// TestErrorIsUnderstood: to other layers an Error means what the backend said,
// but for that it must not be retried.
func TestErrorIsUnderstood(t *testing.T) {
	err := fmt.Errorf("call: %w", &retry.Error{
		Err: errOverload, Why: &spillway.RejectedError{Policy: "inflight"}, Reason: retry.ReasonUnsent, Attempts: 1,
	})
	got := fault.Of(err)
	if !got.Overload || got.Safety != fault.RetrySafe || !got.DontRetry || got.Unsent || got.Retryable(true) {
		t.Errorf("%+v", got)
	}
	if !errors.Is(err, spillway.ErrRejected) {
		t.Error("the local rejection is lost")
	}
}

// TestRejections goes through every reason for which a strategy rejects, and
// checks that it is counted and charges nothing.
func TestRejections(t *testing.T) {
	late := spillway.Call{Deadline: t0.Add(time.Microsecond)}
	for _, test := range []struct {
		call spillway.Call
		f    fault.Failure
		want retry.Reason
	}{
		{spillway.Call{}, fault.Failure{}, retry.ReasonNotRetryable},
		{spillway.Call{}, fault.Failure{Safety: fault.RetrySafe, DontRetry: true}, retry.ReasonDontRetry},
		{spillway.Call{}, fault.Failure{Safety: fault.RetrySafe, Canceled: true}, retry.ReasonCanceled},
		{spillway.Call{}, fault.Failure{Unsent: true, Unprocessed: true}, retry.ReasonUnsent},
		{spillway.Call{Kind: spillway.KindWrite}, overload, retry.ReasonDisabled},
		{spillway.Call{Kind: spillway.KindRead}, notOverload, retry.ReasonOther},
		{spillway.Call{Kind: spillway.KindRead}, fault.Failure{Safety: fault.RetrySafe, RetryAfter: time.Hour, HasRetryAfter: true}, retry.ReasonRetryAfter},
		{late, fault.Failure{Safety: fault.RetryUnsafe}, retry.ReasonNotRetryable},
		{spillway.Call{Kind: spillway.KindRead, Deadline: late.Deadline}, overload, retry.ReasonDeadline},
	} {
		b := bucket(10, 10)
		s := must(retry.NewMongoDB(retry.MongoDBConfig{NoWrites: true, Budget: b, Rand: noJitter}))
		token := s.Begin(test.call)
		got, _ := refresh(s, &token, test.f)
		if got != test.want {
			t.Errorf("%+v: %v, want %v", test, got, test.want)
		}
		want := retry.Stats{}
		if test.want == retry.ReasonOther {
			want.RetriesTotal = 1
		} else {
			want.NotRetriedTotal[test.want] = 1
		}
		if s.Stats(time.Time{}) != want {
			t.Errorf("%v: %+v", test.want, s.Stats(time.Time{}))
		}
		wantTokens(t, b, 10)
	}
}

func TestExplain(t *testing.T) {
	disabled, spent := &retry.NotRetriedError{Reason: retry.ReasonDisabled}, &retry.NotRetriedError{Reason: retry.ReasonBudget}
	for _, row := range []struct {
		err, why error
		attempts int
		want     error // nil means an Error of both
		reason   retry.Reason
	}{
		{nil, context.Canceled, 0, context.Canceled, 0},
		{errTransient, disabled, 1, errTransient, 0},
		{errTransient, disabled, 2, nil, retry.ReasonDisabled},
		{errTransient, spent, 1, nil, retry.ReasonBudget},
		{errTransient, context.Canceled, 1, nil, retry.ReasonCanceled},
		{errTransient, context.DeadlineExceeded, 2, nil, retry.ReasonDeadline},
		{errTransient, &spillway.RejectedError{Policy: "shed"}, 2, nil, retry.ReasonUnsent},
		{errTransient, errors.New("another strategy's"), 1, nil, retry.ReasonOther},
	} {
		got := retry.WrapError(row.err, row.why, row.attempts)
		if row.want == nil {
			row.want = &retry.Error{Err: row.err, Why: row.why, Reason: row.reason, Attempts: row.attempts}
		}
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%v after %d attempts because %v: %#v, want %#v", row.err, row.attempts, row.why, got, row.want)
		}
	}
}
