// Package fault says what a failed attempt means to the caller that might try again:
// whether that is safe, whether the backend was overloaded, whether it timed
// out, how long to wait, and whose fault it was.
//
// Transports fail in their own words. An error that can be classified
// implements one or more of the one-method interfaces [RetrySafety],
// [Throttler], [RetryAfterer], [Faulter], [DontRetrier] and the standard
// library's Timeout() bool; [Of] collects what an error and the errors that it wraps
// have to say. Adapters bring classifiers that return a [Failure] for the errors
// and answers of their transport.
//
// Source: Smithy, "Retrying Requests", section "Retryable errors" (RetryInfo
// and ErrorInfo), with three departures, each of which makes a wrong retry
// impossible: an explicit RetryUnsafe is final, regardless of the fault; RetryUnknown is retried only
// where the call is idempotent and the caller is not at fault, or the error
// proves that nothing ran; and "overloaded; don't retry" (Site Reliability
// Engineering, chapter 21) is a separate fact, not a guess from a status.
//
// # What an attempt teaches
//
//	never sent         [Failure].Unsent       nothing: it touches no throttle, and no budget
//	sent, no answer    [Failure].Unanswered   a throttle learns from it; it earns no budget
//	answered           neither                a throttle learns from it; it earns budget
//
// An attempt was never sent if its context had ended before, if its request is not valid, if its
// body could not be read, or if this process had no connection for it: no descriptor, no port, no
// address of the backend, no proxy. A connection that the backend rejected, or did not answer, was sent for.
package fault

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Safety says whether it is safe to send a failed attempt again.
type Safety uint8

// The values of Safety. The zero value is RetryUnknown.
const (
	RetryUnknown Safety = iota // not enough is known
	RetrySafe                  // a retry is allowed, whatever the call does
	RetryUnsafe                // a retry is never allowed
)

// Party says whose fault a failure was.
type Party uint8

// The parties to a failure. The zero value is Other.
const (
	Other  Party = iota // neither side in particular, or not known
	Client              // the request was wrong
	Server              // the server could not do its part
)

// A Scope says how far a rejection for lack of capacity reaches, and so where and when
// the call may be sent again.
type Scope uint8

// The scopes. The zero value is ScopeUnknown. A limit of the caller's own process has
// no scope: such an attempt is Unsent.
const (
	// ScopeUnknown: the backend did not say. RetryAfter counts for all of it.
	ScopeUnknown Scope = iota
	// ScopeTask: this task is overloaded, others may not be. Another one may be tried at
	// once; RetryAfter counts for this task only.
	ScopeTask
	// ScopeService: the other tasks are overloaded, too. It goes with DontRetry.
	ScopeService
	// ScopeCustomer: this customer is over its quota at every task. The rejection says
	// nothing of the load of the backend, and concerns no other customer.
	ScopeCustomer
)

var scopeNames = [...]string{"", "task", "service", "customer"}

// String returns the scope as it is sent, and nothing for ScopeUnknown.
func (s Scope) String() string {
	if int(s) >= len(scopeNames) {
		s = ScopeUnknown
	}
	return scopeNames[s]
}

// ParseScope returns the Scope that text names, whatever its case, and ScopeUnknown for
// any other text.
func ParseScope(text string) Scope {
	for s := ScopeTask; s <= ScopeCustomer; s++ {
		if strings.EqualFold(text, scopeNames[s]) {
			return s
		}
	}
	return ScopeUnknown
}

// A Failure is what a failed attempt means. The zero Failure says that
// nothing is known.
type Failure struct {
	// RetryAfter is how long the backend asked to be left alone. It counts only
	// if HasRetryAfter is set: zero then asks for a retry at once.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Safety says whether the attempt may be sent again.
	Safety Safety
	// Party says whose fault it was.
	Party Party
	// Overload says that the backend rejected for lack of capacity or quota
	// ("throttling" in Smithy's words).
	Overload bool
	// Scope says how far an Overload reaches, where the backend said so.
	Scope Scope
	// Timeout says that no answer came in time.
	Timeout bool
	// TooLate says that an Overload is the rejection of a call whose deadline was too close.
	TooLate bool
	// DontRetry says that trying elsewhere will not help either: "overloaded;
	// don't retry". It stops this call at this layer, whatever else is set.
	DontRetry bool
	// Unprocessed says that the attempt certainly did nothing at the backend,
	// so that sending it again is as safe as sending it once.
	Unprocessed bool
	// Canceled says that the caller gave up. That is no failure of the backend.
	Canceled bool
	// Unsent says that the attempt was never sent: a policy of this process rejected it, the caller
	// left before, the request was not valid, or this process could not make a connection. It says
	// nothing about the backend, and no budget is charged for it. It is repeated only if Safety is
	// RetrySafe.
	Unsent bool
	// Unanswered says that the attempt was sent, and no answer came: it timed out, or its connection
	// broke or was rejected. Only answers earn retry budget. What is neither Unsent nor Unanswered is
	// taken for an answer.
	Unanswered bool
}

// Retryable reports whether a call may be sent again after f: RetryUnsafe, DontRetry
// and Canceled are final, RetrySafe is enough, and RetryUnknown needs that the attempt was
// sent, and either proof that nothing ran or an idempotent call that was not itself at fault.
func (f Failure) Retryable(idempotent bool) bool {
	switch {
	case f.DontRetry, f.Canceled, f.Safety == RetryUnsafe:
		return false
	case f.Safety == RetrySafe:
		return true
	case f.Unsent:
		return false
	case f.Unprocessed:
		return true
	default:
		return idempotent && f.Party != Client
	}
}

// OverQuota reports whether the backend rejected one customer and not for lack of
// capacity: that moves no throttle, limit or figure that all customers share.
func (f Failure) OverQuota() bool {
	return f.Overload && (f.Scope == ScopeCustomer || f.Party == Client)
}

// The interfaces by which an error reports its meaning. Each is looked up
// through wrapped errors; the outermost error that implements one is believed.
type (
	// RetrySafety is implemented by errors that know whether a retry is safe.
	RetrySafety interface{ RetrySafety() Safety }
	// Throttler is implemented by errors that may stem from lack of capacity.
	Throttler interface{ Throttle() bool }
	// RetryAfterer is implemented by errors that carry the backend's hint: how long to wait before a
	// retry. ok is false without a hint.
	RetryAfterer interface {
		RetryAfter() (d time.Duration, ok bool)
	}
	// Faulter is implemented by errors that know whose fault they are.
	Faulter interface{ Fault() Party }
	// DontRetrier is implemented by errors that may forbid a retry for good.
	DontRetrier interface{ DontRetry() bool }
)

// A Failurer is an error that knows all there is to know. It is believed before
// the small interfaces of the same error, and nothing that it wraps is asked.
type Failurer interface{ Failure() Failure }

// Of returns what err and the errors that it wraps report. Of an error that
// implements none of the interfaces nothing is known, except that a cancelled
// context is Canceled, an expired one is a Timeout, a connection that the backend did not accept is
// Unprocessed, and one that this process could not ask for, or a request that it could not
// make, is Unsent. It reads the errors of packages net and net/http. It is safe
// for concurrent use and panics for no error.
func Of(err error) Failure {
	var k knowledge
	k.ask(err)
	if err != nil {
		k.system(err)
	}
	if !k.whole && errors.Is(err, context.Canceled) {
		k.Canceled = true
	}
	return k.Failure
}

// knowledge is what has been learnt of an error so far, from the outside in.
type knowledge struct {
	Failure
	whole                                                bool // a Failurer spoke
	safety, throttle, timeout, after, party, dont, local bool // facets already known
}

func (k *knowledge) ask(err error) {
	for err != nil && !k.whole {
		k.listen(err)
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				k.ask(e)
			}
			return
		default:
			return
		}
	}
}

func (k *knowledge) listen(err error) {
	if e, ok := err.(Failurer); ok {
		k.fill(e.Failure())
		return
	}
	if e, ok := err.(RetrySafety); ok && !k.safety {
		k.Safety, k.safety = e.RetrySafety(), true
	}
	if e, ok := err.(Throttler); ok && !k.throttle {
		k.Overload, k.throttle = e.Throttle(), true
	}
	if e, ok := err.(interface{ Timeout() bool }); ok && !k.timeout {
		k.Failure.Timeout, k.timeout = e.Timeout(), true
	}
	if e, ok := err.(RetryAfterer); ok && !k.after {
		k.RetryAfter, k.HasRetryAfter = e.RetryAfter()
		k.after = k.HasRetryAfter
	}
	if e, ok := err.(Faulter); ok && !k.party {
		k.Party, k.party = e.Fault(), true
	}
	if e, ok := err.(DontRetrier); ok && !k.dont {
		k.DontRetry, k.dont = e.DontRetry(), true
	}
	if e, ok := err.(interface{ Unsent() bool }); ok && !k.local {
		k.Failure.Unsent, k.local = e.Unsent(), true
	}
}

// fill takes from f each field that is not known yet.
func (k *knowledge) fill(f Failure) {
	known := k.Failure
	k.Failure, k.whole = f, true
	if k.safety {
		k.Safety = known.Safety
	}
	if k.throttle {
		k.Overload = known.Overload
	}
	if k.timeout {
		k.Failure.Timeout = known.Timeout
	}
	if k.after {
		k.RetryAfter, k.HasRetryAfter = known.RetryAfter, true
	}
	if k.party {
		k.Party = known.Party
	}
	if k.dont {
		k.DontRetry = known.DontRetry
	}
	if k.local {
		k.Failure.Unsent = known.Unsent
	}
}
