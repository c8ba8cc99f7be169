package retry

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// A Reason says why a call is not retried.
type Reason uint8

// These are the reasons. The zero value is for a strategy that has its own reasons.
const (
	ReasonOther        Reason = iota
	ReasonNotRetryable        // nothing says that a retry is safe, or something says that it is not
	ReasonDontRetry           // the backend says that a retry will not help, anywhere
	ReasonCanceled            // the caller gave up
	ReasonUnsent              // another policy of this process rejected the attempt
	ReasonDisabled            // retries of such calls are switched off
	ReasonAttempts            // the limit of attempts is reached
	ReasonRetryAfter          // the backend asks to wait for longer than MaxRetryAfter
	ReasonDeadline            // the next attempt would come too late
	ReasonBudget              // the budget does not pay for it
	reasons
)

// Reasons is the number of values of [Reason], for tables.
const Reasons = int(reasons)

var reasonNames = [Reasons]string{
	"other", "not retryable", "don't retry", "canceled", "unsent", "disabled", "attempts", "retry after", "deadline", "budget",
}

// String returns the name of r in lower case.
func (r Reason) String() string { return reasonNames[r.known()] }

// known returns r, or ReasonOther if r is not one of the reasons.
func (r Reason) known() Reason {
	if r >= reasons {
		return ReasonOther
	}
	return r
}

// plain reports whether the failed attempt alone is the reason. Its error then needs no explanation
// by this package.
func (r Reason) plain() bool { return r >= ReasonNotRetryable && r <= ReasonDisabled }

// A NotRetriedError is the answer of a strategy that does not retry. The call was sent; only its
// retry is denied, so the error never matches [spillway.ErrRejected]. It is made in this process,
// and the answer of the backend is another error. Errors without numbers are shared: treat a
// NotRetriedError as read-only.
type NotRetriedError struct {
	// Reason is why the call is not retried.
	Reason Reason
	// Tokens is the number of tokens in the budget, Capacity its maximum, and Cost the cost of the
	// retry. They are set only with ReasonBudget.
	Tokens, Capacity, Cost float64
	// Delay is the time after which the next attempt was due. It is set only with ReasonDeadline.
	Delay time.Duration
	// RetryAfter is how long the backend asked to wait. It is set with ReasonRetryAfter, and with
	// ReasonDeadline if the backend sent such a hint.
	RetryAfter time.Duration
	// LongPollDelay is how long to wait before the error is returned to the caller of a long poll,
	// because that caller will send it again at once.
	LongPollDelay time.Duration
}

// Error says why there is no retry, and what to do about it.
func (e *NotRetriedError) Error() string {
	switch e.Reason {
	case ReasonBudget:
		return fmt.Sprintf("not retried: retry budget exhausted: %s of %s tokens left, a retry costs %s (it refills with later calls)",
			count(e.Tokens), count(e.Capacity), count(e.Cost))
	case ReasonDeadline:
		if e.Delay <= 0 {
			return "not retried: the deadline has passed (allow more time)"
		}
		return fmt.Sprintf("not retried: the next attempt is due in %v, too late for the deadline (allow more time)", e.Delay)
	case ReasonRetryAfter:
		return fmt.Sprintf("not retried: the backend asks to wait %v, longer than MaxRetryAfter (try again then)", e.RetryAfter)
	default:
		return rejections[e.Reason.known()].text
	}
}

// count returns n with up to three decimals, rounded down: a cost that is just above what is left
// must not look equal.
func count(n float64) string { return strconv.FormatFloat(math.Floor(n*1000)/1000, 'f', -1, 64) }

// rejections are the shared errors by Reason, with a text for reasons without numbers.
var rejections = [Reasons]struct {
	NotRetriedError
	text string
}{
	ReasonOther:        {NotRetriedError{Reason: ReasonOther}, "not retried"},
	ReasonNotRetryable: {NotRetriedError{Reason: ReasonNotRetryable}, "not retried: nothing says that a retry is safe (mark the call Idempotent if it is)"},
	ReasonDontRetry:    {NotRetriedError{Reason: ReasonDontRetry}, "not retried: the backend says that a retry will not help (send less)"},
	ReasonCanceled:     {NotRetriedError{Reason: ReasonCanceled}, "not retried: the caller gave up"},
	ReasonUnsent:       {NotRetriedError{Reason: ReasonUnsent}, "not retried: the attempt was never sent"},
	ReasonDisabled:     {NotRetriedError{Reason: ReasonDisabled}, "not retried: retries of such calls are switched off"},
	ReasonAttempts:     {NotRetriedError{Reason: ReasonAttempts}, "not retried: no more attempts are allowed (each has failed; see the last error)"},
}

// rejection returns the shared error for r.
func rejection(r Reason) *NotRetriedError { return &rejections[r].NotRetriedError }

// An Error is what [Do] returns if it has retried a call, or might have. errors.Is and errors.As
// find both the last answer of the backend and the reason why no attempt followed it. Package fault
// reads it as the backend's answer, except that it must not be retried: only this layer does that,
// because layers that retry one another's failures multiply the load.
type Error struct {
	// Err is the last answer of the backend.
	Err error
	// Why is the reason that no attempt followed: the error of the strategy, such as a
	// [NotRetriedError], the error of the context, or the error of a policy that rejected a retry
	// in this process.
	Why error
	// Reason is Why as a typed value.
	Reason Reason
	// Attempts is the number of attempts that were sent.
	Attempts int
}

// Error says how many attempts were sent, why no attempt followed, and how the last one failed.
func (e *Error) Error() string {
	plural := "s"
	if e.Attempts == 1 {
		plural = ""
	}
	return fmt.Sprintf("retry: gave up after %d attempt%s: %v: last error: %v", e.Attempts, plural, e.Why, e.Err)
}

// Unwrap returns Err and Why.
func (e *Error) Unwrap() []error { return []error{e.Err, e.Why} }

// DontRetry returns true: layers above must not retry a call that was retried here.
func (e *Error) DontRetry() bool { return true }

// Timeout reports whether the last answer or the end of the call was a timeout. Packages such as
// net/url ask only the outermost error.
func (e *Error) Timeout() bool { return fault.Of(e.Err).Timeout || fault.Of(e.Why).Timeout }

// Unsent returns false: even if the last retry was rejected in this process, the call has reached
// the backend.
func (e *Error) Unsent() bool { return false }

// reasonOf returns the Reason for the error why.
func reasonOf(why error) Reason {
	if rejected, ok := errors.AsType[*NotRetriedError](why); ok {
		return rejected.Reason
	}
	switch f := fault.Of(why); {
	case f.Unsent:
		return ReasonUnsent
	case f.Canceled:
		return ReasonCanceled
	case f.Timeout:
		return ReasonDeadline
	default:
		return ReasonOther
	}
}
