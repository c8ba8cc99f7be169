package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// words is an error that speaks through each of the small interfaces.
type words struct {
	safety     fault.Safety
	throttle   bool
	timeout    bool
	after      time.Duration
	hasAfter   bool
	party      fault.Party
	dontRetry  bool
	underlying error
}

func (w words) Error() string                     { return "words" }
func (w words) RetrySafety() fault.Safety         { return w.safety }
func (w words) Throttle() bool                    { return w.throttle }
func (w words) Timeout() bool                     { return w.timeout }
func (w words) RetryAfter() (time.Duration, bool) { return w.after, w.hasAfter }
func (w words) Fault() fault.Party                { return w.party }
func (w words) DontRetry() bool                   { return w.dontRetry }
func (w words) Unwrap() error                     { return w.underlying }

// whole is an error that knows everything at once.
type whole fault.Failure

func (w whole) Error() string          { return "whole" }
func (w whole) Failure() fault.Failure { return fault.Failure(w) }

// final is an error that only forbids a retry.
type final struct{ error }

func (final) DontRetry() bool { return true }
func (f final) Unwrap() error { return f.error }

func TestOf(t *testing.T) {
	overload := fault.Failure{Safety: fault.RetrySafe, Party: fault.Server, Overload: true, HasRetryAfter: true, RetryAfter: time.Second}
	for name, row := range map[string]struct {
		err  error
		want fault.Failure
	}{
		"nil":                {nil, fault.Failure{}},
		"an unknown error":   {errors.New("x"), fault.Failure{}},
		"a cancelled caller": {fmt.Errorf("x: %w", context.Canceled), fault.Failure{Canceled: true}},
		"a passed deadline":  {fmt.Errorf("x: %w", context.DeadlineExceeded), fault.Failure{Timeout: true, Unanswered: true}},
		"all small interfaces, wrapped": {
			fmt.Errorf("x: %w", words{safety: fault.RetryUnsafe, throttle: true, timeout: true, after: 3, hasAfter: true, party: fault.Client, dontRetry: true}),
			fault.Failure{Safety: fault.RetryUnsafe, Overload: true, Timeout: true, RetryAfter: 3, HasRetryAfter: true, Party: fault.Client, DontRetry: true},
		},
		"the outermost is believed": {
			words{safety: fault.RetrySafe, underlying: words{safety: fault.RetryUnsafe, throttle: true}},
			fault.Failure{Safety: fault.RetrySafe},
		},
		"a hint is looked for further in": {
			words{underlying: words{after: time.Minute, hasAfter: true}},
			fault.Failure{RetryAfter: time.Minute, HasRetryAfter: true},
		},
		"a Failurer":                        {fmt.Errorf("x: %w", whole(overload)), overload},
		"joined errors, in order":           {errors.Join(errors.New("x"), whole(overload), words{safety: fault.RetryUnsafe}), overload},
		"a wrapper adds what it alone says": {final{whole(overload)}, func() fault.Failure { f := overload; f.DontRetry = true; return f }()},
		"a local rejection":                 {fmt.Errorf("x: %w", &spillway.RejectedError{Policy: "p"}), fault.Failure{Unsent: true}},
	} {
		if got := fault.Of(row.err); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestRetryable(t *testing.T) {
	for name, row := range map[string]struct {
		failure     fault.Failure
		once, twice bool // retryable where the call is not idempotent, and where it is
	}{
		"nothing known":                  {fault.Failure{}, false, true},
		"the caller's fault":             {fault.Failure{Party: fault.Client}, false, false},
		"the server's fault":             {fault.Failure{Party: fault.Server}, false, true},
		"yes":                            {fault.Failure{Safety: fault.RetrySafe}, true, true},
		"yes, though the caller's fault": {fault.Failure{Safety: fault.RetrySafe, Party: fault.Client}, true, true},
		"no":                             {fault.Failure{Safety: fault.RetryUnsafe}, false, false},
		"no, though the server's fault":  {fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}, false, false},
		"no, though nothing ran":         {fault.Failure{Safety: fault.RetryUnsafe, Unprocessed: true}, false, false},
		"nothing ran":                    {fault.Failure{Unprocessed: true}, true, true},
		"overloaded; don't retry":        {fault.Failure{Safety: fault.RetrySafe, Overload: true, DontRetry: true}, false, false},
		"the caller left":                {fault.Failure{Safety: fault.RetrySafe, Canceled: true}, false, false},
		"never sent":                     {fault.Failure{Unsent: true}, false, false},
		"never sent, though nothing ran": {fault.Failure{Unsent: true, Unprocessed: true}, false, false},
		"never sent, and safe to send":   {fault.Failure{Safety: fault.RetrySafe, Unsent: true}, true, true},
	} {
		if got := row.failure.Retryable(false); got != row.once {
			t.Errorf("%s: retryable = %v, want %v", name, got, row.once)
		}
		if got := row.failure.Retryable(true); got != row.twice {
			t.Errorf("%s, idempotent: retryable = %v, want %v", name, got, row.twice)
		}
	}
}

type quotaError struct{ wait time.Duration }

func (e quotaError) Error() string                     { return "quota exceeded" }
func (e quotaError) Throttle() bool                    { return true }
func (e quotaError) RetryAfter() (time.Duration, bool) { return e.wait, true }

// An error of the user reports its meaning with its methods.
func ExampleOf() {
	err := fmt.Errorf("list users: %w", quotaError{2 * time.Second})
	f := fault.Of(err)
	fmt.Println(f.Overload, f.RetryAfter, f.Retryable(false))
	// Output: true 2s false
}
