package retry

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// A Strategy decides whether and when to send failed calls again. It is shared
// by all calls of a client, or of several, and must be safe for concurrent use.
// It reads no clock and never waits.
//
// For each call, Begin is called once, then each Token is given to one of the
// other methods once. A Token that was used before, or was handed out by another
// Strategy, yields an error that matches [ErrTokenUsed] or [ErrForeignToken] and
// has no other effect.
type Strategy interface {
	// Begin hands out the Token of the first attempt. There always is one: the
	// first attempt is made whatever the state of the budget, and its success
	// must be seen. It may carry a delay.
	Begin(call spillway.Call) Token

	// Refresh reports, at the time now, that the attempt of t failed with f. It returns the
	// Token of the next attempt, or an error that says why the call is not retried; a
	// [NotRetriedError] has the reason as a typed value. The call has then ended and needs no
	// Release.
	Refresh(now time.Time, t Token, f fault.Failure) (Token, error)

	// Succeed reports that the attempt of t succeeded, which ends the call.
	Succeed(t Token) error

	// Release ends the call with neither a success nor another attempt. If f is
	// Unsent, the attempt of t was never made, and what was charged for it is
	// paid back.
	Release(t Token, f fault.Failure) error
}

// A Budget pays for retries. Several strategies may share one. It must be safe
// for concurrent use.
//
// The key is the endpoint that the attempt used, or the Key of the call where
// the attempt did not name one; a Budget may keep separate accounts by it.
type Budget interface {
	// Withdraw takes out tokens for a retry, all or none, and reports whether it
	// did, with the tokens left after the decision and how many there can be.
	Withdraw(now time.Time, key string, tokens float64) (left, capacity float64, ok bool)

	// Deposit puts tokens in.
	Deposit(key string, tokens float64)
}

// Unlimited is a [Budget] that pays for every retry. It removes what keeps
// retries from making an overload worse; use it where something else does.
type Unlimited struct{}

// Withdraw returns true.
func (Unlimited) Withdraw(time.Time, string, float64) (left, capacity float64, ok bool) {
	return 0, 0, true
}

// Deposit does nothing.
func (Unlimited) Deposit(string, float64) {}

// idempotent reports whether doing the call twice has the effect of doing it
// once, as far as is known.
func idempotent(call *spillway.Call) bool { return call.Idempotent || call.Kind == spillway.KindRead }
