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

// The reasons. The zero value is that of a strategy which has its own.
const (
	ReasonOther        Reason = iota
	ReasonNotRetryable        // nothing says that a retry is safe, or something that it is not
	ReasonDontRetry           // the backend says that trying elsewhere will not help either
	ReasonCanceled            // the caller gave up
	ReasonUnsent              // another policy of this process rejected the attempt
	ReasonDisabled            // retries of such calls are switched off
	ReasonAttempts            // the limit of attempts is reached
	ReasonRetryAfter          // the backend asks to be left alone for longer than MaxRetryAfter
	ReasonDeadline            // the next attempt would come too late
	ReasonBudget              // the budget does not pay for it
	reasons
)

// Reasons is how many values a [Reason] can have, for tables.
const Reasons = int(reasons)

var reasonNames = [Reasons]string{
	"other", "not retryable", "don't retry", "canceled", "unsent", "disabled", "attempts", "retry after", "deadline", "budget",
}

// String returns a lower-case word or two for r.
func (r Reason) String() string { return reasonNames[r.known()] }

// known returns r, or ReasonOther if it is none of the reasons.
func (r Reason) known() Reason {
	if r >= reasons {
		return ReasonOther
	}
	return r
}

// plain reports whether the failed attempt alone decided that the call is not retried, so that
// its error needs no explanation by this package.
func (r Reason) plain() bool { return r >= ReasonNotRetryable && r <= ReasonDisabled }

// A NotRetriedError is the answer of a strategy that does not retry: the call was sent, and
// only its retry is denied. It never matches [spillway.ErrRejected]. It is made in this
// process; the answer of the backend is another error. Errors without numbers are made ahead
// of time and shared: treat one as read-only.
type NotRetriedError struct {
	// Reason says why.
	Reason Reason
	// Tokens of Capacity are in the budget, and the retry costs Cost. They are set
	// with ReasonBudget only.
	Tokens, Capacity, Cost float64
	// Delay is after how long the next attempt was due. It is set with
	// ReasonDeadline only.
	Delay time.Duration
	// RetryAfter is how long the backend asked to be left alone. It is set with
	// ReasonRetryAfter, and with ReasonDeadline if there was such a hint.
	RetryAfter time.Duration
	// LongPollDelay is how long to wait before the error is returned to the caller of a
	// long poll, who will send it again at once.
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

// count writes n with up to three decimals, rounded down so that what is just
// too little does not look like enough.
func count(n float64) string { return strconv.FormatFloat(math.Floor(n*1000)/1000, 'f', -1, 64) }

// rejections are the shared errors of each Reason, with the text of reasons that have no
// numbers.
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

// An Error is what [Do] returns when it has retried, or would have. It reaches
// both what the backend said and why it was not asked again: errors.Is and
// errors.As find either. To package fault it means what the backend said, except
// that it must not be retried: that was this layer's to do, and layers that
// retry one another's failures multiply the load.
type Error struct {
	// Err is the last answer of the backend.
	Err error
	// Why says why there was no further attempt: the error of the strategy, such as a
	// [NotRetriedError], of the context, or of the policy that rejected a retry locally.
	Why error
	// Reason is Why in short.
	Reason Reason
	// Attempts is how many attempts were sent.
	Attempts int
}

// Error says how often the call was tried, why not again, and how it last failed.
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

// Timeout reports whether the last answer, or the end of the call, was that time
// ran out. Packages such as net/url ask the outermost error only.
func (e *Error) Timeout() bool { return fault.Of(e.Err).Timeout || fault.Of(e.Why).Timeout }

// Unsent returns false: even where the last retry was rejected locally, the call
// has reached the backend.
func (e *Error) Unsent() bool { return false }

// reasonOf returns why in short.
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
