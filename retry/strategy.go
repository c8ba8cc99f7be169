package retry

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// A Strategy decides whether and when to send failed calls again. All calls of one client, or of
// several, share it, so it must be safe for concurrent use. It reads no clock and never waits.
//
// For each call, Begin is called once, and then each Token is passed to one of the other methods
// once. A Token that was used before, or that another Strategy has made, gives an error that
// matches [ErrTokenUsed] or [ErrForeignToken], and has no other effect.
type Strategy interface {
	// Begin returns the Token of the first attempt. There always is one, which may have a delay:
	// the first attempt is made whatever the state of the budget, and its success must be counted.
	Begin(call spillway.Call) Token

	// Refresh reports, at the time now, that the attempt of t failed with f. It returns the
	// Token of the next attempt, or an error that says why the call is not retried; a
	// [NotRetriedError] has the reason as a typed value. The call has then ended and needs no
	// Release.
	Refresh(now time.Time, t Token, f fault.Failure) (Token, error)

	// Succeed reports that the attempt of t succeeded, which ends the call.
	Succeed(t Token) error

	// Release ends the call without a success and without another attempt. If f is Unsent, the
	// attempt of t was never made, and its cost is paid back.
	Release(t Token, f fault.Failure) error
}

// A Budget pays for retries. Several strategies may share one. It must be safe for concurrent use.
//
// The key is the endpoint that the attempt used, or the Key of the call if the attempt named no
// endpoint. A Budget may keep separate accounts by key.
type Budget interface {
	// Withdraw takes all of tokens for a retry, or none, and reports whether it did. left is the
	// number of tokens after that, and capacity their maximum.
	Withdraw(now time.Time, key string, tokens float64) (left, capacity float64, ok bool)

	// Deposit adds tokens.
	Deposit(key string, tokens float64)
}

// Unlimited is a [Budget] that pays for every retry. Without a budget, retries can make an overload
// worse. Use it only if something else limits them.
type Unlimited struct{}

// Withdraw returns true.
func (Unlimited) Withdraw(time.Time, string, float64) (left, capacity float64, ok bool) {
	return 0, 0, true
}

// Deposit does nothing.
func (Unlimited) Deposit(string, float64) {}

// idempotent reports whether the call is known to have the same effect twice as once.
func idempotent(call *spillway.Call) bool { return call.Idempotent || call.Kind == spillway.KindRead }
