// Package place lets two policies that share an in-flight limit count an attempt once.
// Package egress takes a place for the attempt and passes it on in the context. A policy
// below it, such as the load balancing policy of package spillgrpc, joins that place in
// place of taking a second one.
package place

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A place is held by its attempt, by one stream that has joined it, or by both. The last
// holder gives it back. A stream can only join while the attempt holds the place, and
// only if no other stream has joined: each further one takes another place.
const (
	byAttempt = 1 << iota
	byStream
)

// place is the context of an attempt that holds a place in flight. It is the Settler of
// the attempt's ticket.
type place struct {
	context.Context //nolint:containedctx // it is one

	limiter spillway.Settler
	ticket  spillway.Ticket // of the limiter
	holders atomic.Int32
}

type key struct{}

// Value implements [context.Context].
func (p *place) Value(k any) any {
	if k == (key{}) {
		return p
	}
	return p.Context.Value(k)
}

// expected says that some policy may join places.
var expected atomic.Bool

// Expect says that this process has a policy that may join places. Without any, attempts
// are spared the context.
func Expect() { expected.Store(true) }

// With returns a context by which one stream can join the ticket's place. From then
// on the ticket gives the place back when no stream has joined, or that has ended, too.
// A ticket that holds nothing is left as it is.
func With(ctx context.Context, t *spillway.Ticket) context.Context {
	if t.By == nil || !expected.Load() {
		return ctx
	}
	p := &place{Context: ctx, limiter: t.By, ticket: *t}
	p.holders.Store(byAttempt)
	t.By = p
	return p
}

// Limiter returns the limiter of a place that the Settler of a ticket holds.
func Limiter(by spillway.Settler) spillway.Settler {
	if p, ok := by.(*place); ok {
		return p.limiter
	}
	return by
}

// Settle implements [spillway.Settler], for the attempt.
func (p *place) Settle(now time.Time, _ spillway.Ticket, o spillway.Outcome) {
	p.leave(byAttempt, now, o)
}

// stream is a place, as the Settler of the stream's ticket.
type stream place

// Join joins the place that ctx holds in the limit of limiter, if there is one to join.
// The ticket must be settled when the stream has ended.
func Join(ctx context.Context, limiter spillway.Settler) (t spillway.Ticket, joined bool) {
	if ctx == nil {
		return t, false
	}
	p, ok := ctx.Value(key{}).(*place)
	if !ok || p.limiter != limiter || !p.holders.CompareAndSwap(byAttempt, byAttempt|byStream) {
		return t, false
	}
	return spillway.Ticket{By: (*stream)(p), Criticality: p.ticket.Criticality}, true
}

// Settle implements [spillway.Settler], for the stream.
func (s *stream) Settle(now time.Time, _ spillway.Ticket, o spillway.Outcome) {
	(*place)(s).leave(byStream, now, o)
}

// leave is called once by each holder.
func (p *place) leave(holder int32, now time.Time, o spillway.Outcome) {
	if p.holders.Add(-holder) == 0 {
		p.ticket.Settle(now, o)
	}
}
