// Package accounts counts how requests of HTTP and commands of MongoDB end. Each request that a client offers ends in
// exactly one account, so that the accounts and the requests in progress add up to what was
// offered: an operator who looks for lost requests finds each of them in one place.
package accounts

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/capped"
)

// An Account is what happened to a request.
type Account uint8

// The accounts.
const (
	Served           Account = iota // in time
	Late                            // the deadline passed first
	Failed                          // the upstream failed or could not be reached
	Rejected                        // here, for a reason
	RejectedUpstream                // by the upstream: it was overloaded, or the customer over its quota
	GoneWaiting                     // the client left before the request was sent on
	GoneSent                        // the client left after it was sent on
)

// Count is how many accounts there are.
const Count = int(GoneSent) + 1

var names = [Count]string{"served", "late", "failed", "rejected", "rejected_upstream", "client_gone_waiting", "client_gone_sent"}

// String returns the name, as metrics have it.
func (a Account) String() string { return names[a] }

// Upstream returns the account of a request whose last attempt ended with an outcome.
func Upstream(o spillway.Outcome) Account {
	switch o {
	case spillway.OutcomeServed:
		return Served
	case spillway.OutcomeTimedOut:
		return Late
	case spillway.OutcomeOverloaded, spillway.OutcomeOverQuota:
		return RejectedUpstream
	case spillway.OutcomeAbandoned, spillway.OutcomeNotStarted:
		return GoneSent
	default:
		return Failed
	}
}

// A Reason is why a request was rejected here: a [spillway.Reason], or one of the reasons
// below, which no policy has.
type Reason uint8

// Reasons of the proxy itself, in addition to the reasons of policies.
const (
	MaxRequests Reason = Reason(spillway.ReasonFairShare) + 1 + iota // of the listener
	NoRoute
	Draining
	BadRequest // it is too long, or asks for a tunnel
)

// Reasons is how many reasons there are, the zero Reason included.
const Reasons = int(BadRequest) + 1

var own = [...]string{"max_requests", "no_route", "draining", "bad_request"}

// String returns the name, as metrics have it.
func (r Reason) String() string {
	switch {
	case r >= MaxRequests:
		return own[r-MaxRequests]
	case r == 0:
		return "other"
	default:
		return spillway.Reason(r).String()
	}
}

// An End is how one request ended.
type End struct {
	Account     Account
	Reason      Reason // of Rejected
	Criticality spillway.Criticality
	Retried     bool    // more than one attempt was made
	At          *Counts // of the place of the request, of the same Book; nil: it has none

	// Waited is the time that a request waited here, and Sent that from then to the head of its answer.
	// Both are zero for a request whose latency does not count.
	Waited, Sent time.Duration
}

// A Book has the accounts of a proxy, of each place and in total. The zero Book is ready for use.
// It is safe for concurrent use; counting takes no lock and allocates nothing.
type Book struct {
	offered  atomic.Uint64
	unplaced Counts // of requests without a place
	places   capped.Map[Place, Counts]
}

// Begin counts a request that is offered. [Book.End] must be called exactly once for it.
func (b *Book) Begin() { b.offered.Add(1) }

// End counts the end of a request.
func (b *Book) End(e End) { cmp.Or(e.At, &b.unplaced).end(&e) }

// Totals are the accounts at one time.
type Totals struct {
	Offered  uint64
	Ended    [Count][spillway.Criticalities]uint64
	Rejected [Reasons]uint64 // of Ended[Rejected], by reason
	Retried  [Count]uint64   // of Ended, those with more than one attempt
}

// Read returns the accounts. Requests go on meanwhile: what has ended is read first, so that it
// is never more than what was offered.
func (b *Book) Read() (t Totals) {
	b.unplaced.addTo(&t)
	for _, c := range b.places.All() {
		c.addTo(&t)
	}
	t.Offered = b.offered.Load()
	return t
}

// Of returns how many requests ended in an account.
func (t *Totals) Of(a Account) (n uint64) {
	for _, of := range t.Ended[a] {
		n += of
	}
	return n
}

// Sum returns how many requests have ended.
func (t *Totals) Sum() (n uint64) {
	for a := range t.Ended {
		n += t.Of(Account(a))
	}
	return n
}
