package egress

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/late"
	"github.com/seed90641741/spillway/internal/place"
	"github.com/seed90641741/spillway/retry"
)

// Hedged makes a call as [Client.DoRoute] does, and returns the result of send. If the first
// attempt has no answer when a hedge is due by [Config.Hedge], Hedged makes another attempt at the
// same time. The first answer is the result, and the context of the other attempt is canceled.
//
// Only calls of KindRead are hedged, and with [retry.HedgeConfig].Writes also those that are
// Idempotent. A hedge is sent only if the throttle is closed for the call, the in-flight limit has
// a slot for the hedge, and all budgets of [retry.Hedge] pay for it. A call is not hedged if it is
// made for a request that is itself a retry or a hedge, so that hedges of several layers add up and
// do not multiply. It is not hedged either if the answer to that request will say "don't retry".
// Only the first attempt of a call is hedged. If it and its hedge fail, both count as attempts of
// the call. The throttle counts them as one, and observers see one. They also receive an Event of
// the policy "hedge" for each hedge that was sent (OutcomeServed if its answer counted, else
// OutcomeAbandoned) or that a budget did not pay for (Rejected).
//
// send is called from two goroutines at once. It must not change data that both use, and must
// return soon after its context has ended. The context of the result is canceled when its Hold ends
// ([Attempt.Hold]). discard, if not nil, is called with the result of the attempt that is not the
// result of the call, to free it, and with every result if an Observer panics. It is called from
// either goroutine. If send or discard panics for a hedge after the call has returned, the next
// call of Hedged with c panics with the same value.
func Hedged[T any](
	ctx context.Context, c *Client, call spillway.Call, by Router, send func(context.Context, *Attempt) (T, error), discard func(T, error),
) (T, error) {
	var value T
	if discard == nil {
		discard = func(T, error) {}
	}
	c.panicked.GoOn()
	p, sent, answered, returned := c.current.Load(), error(nil), false, false
	defer func() {
		if answered && !returned { // an Observer has panicked
			discard(value, sent)
		}
	}()
	err := c.do(ctx, &call, by, func(ctx context.Context, a *Attempt) error {
		answered = false
		value, sent = attemptHedged(ctx, c, p, &call, a, send, discard)
		answered = true
		return sent
	})
	returned = true
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// attemptHedged makes an attempt, hedged if that is allowed.
func attemptHedged[T any](
	ctx context.Context, c *Client, p *policies, call *spillway.Call, a *Attempt, send func(context.Context, *Attempt) (T, error), discard func(T, error),
) (T, error) {
	h := p.hedge
	if h == nil || a.Number > 0 || call.Kind != spillway.KindRead && !(call.Idempotent && p.config.Hedge.Writes) || forbidden(ctx) {
		return send(ctx, a)
	}
	h.Begin()
	delay, known := h.Delay()
	if !known {
		v, err := send(ctx, a)
		if err == nil {
			h.Answered(time.Since(a.Start), false)
		}
		return v, err
	}
	r := &race[T]{policies: p, late: &c.panicked, call: *call, send: send, discard: discard, ctx: ctx, done: make(chan struct{})}
	r.hedge = calls.Attempt{Attempt: &retry.Attempt{Number: 1}, Route: a.core.Route, Accepts: 1, Task: a.core.Task}
	return r.run(a, delay)
}

// forbidden reports whether calls for the request that ctx belongs to are not hedged.
func forbidden(ctx context.Context) bool {
	mark := final.Of(ctx)
	return mark != nil && (mark.Repeated || mark.IsSet())
}

// A race is a first attempt, and a hedge of it that may or may not be sent.
type race[T any] struct {
	policies *policies
	late     *late.Panic // of the Client
	call     spillway.Call
	send     func(context.Context, *Attempt) (T, error)
	discard  func(T, error)
	ctx      context.Context    //nolint:containedctx // of the call; both attempts derive theirs
	first    context.CancelFunc // cancels the first attempt

	hedge calls.Attempt
	done  chan struct{}

	mu     sync.Mutex
	cancel context.CancelFunc // cancels the hedge; nil until it is sent
	ended  bool               // whether the hedge has a result, or has panicked
	over   bool               // whether it is too late for a result of the hedge
	unpaid bool               // whether a budget did not pay for the hedge
	value  T
	err    error
	panics any // what the hedge panicked with; the goroutine of the call panics with it
}

// run makes the first attempt, and the hedge once delay has passed. It returns the result of the
// call. If anything panics, both results are discarded.
func (r *race[T]) run(a *Attempt, delay time.Duration) (v T, err error) {
	ctx, cancel := context.WithCancel(r.ctx) //nolint:gosec // Release calls cancel
	r.first = cancel
	a.core.Cancel = cancel
	timer := time.AfterFunc(delay, r.fire)
	defer timer.Stop()
	answered, returned := false, false
	defer func() {
		if hedged := r.end(); !returned && hedged && r.panics == nil {
			r.discard(r.value, r.err)
		}
		if !returned && answered {
			r.discard(v, err)
		}
	}()
	v, err = r.send(ctx, a)
	answered = true
	took := time.Since(a.Start)
	if r.waits(err) {
		<-r.done // it does not wait for longer than the context of the call lasts
	}
	won := r.settle(a, err, took, delay)
	returned = true
	return r.choose(won, v, err)
}

// settle ends the race after the first attempt, which took a time and ended with err, and reports
// the hedge. It returns whether the hedge has won.
func (r *race[T]) settle(a *Attempt, err error, took, delay time.Duration) (won bool) {
	hedged := r.end()
	if r.unpaid {
		r.report(spillway.Event{Rejected: true})
	}
	if r.panics != nil {
		panic(r.panics) //nolint:forbidigo // the caller expects panics in its own goroutine
	}
	if hedged && r.err == nil { // it has canceled the first attempt, whose result does not matter
		a.core.Accepts = r.hedge.Accepts
		r.policies.hedge.Settle(true)
		r.policies.hedge.Answered(time.Since(a.Start), true)
		r.report(spillway.Event{Outcome: spillway.OutcomeServed, Latency: time.Since(r.hedge.Start)})
		return true
	}
	if r.cancel != nil {
		r.report(spillway.Event{Outcome: spillway.OutcomeAbandoned, Latency: time.Since(r.hedge.Start)})
	}
	if err == nil {
		r.policies.hedge.Answered(took, took >= delay)
	} else if r.cancel != nil {
		a.Number++ // two attempts have failed
	}
	return false
}

// choose returns the result of the call, and discards the other result. If both attempts have
// failed, the call has the error of the first one, or that of the hedge if only the hedge was
// answered with "don't retry".
func (r *race[T]) choose(won bool, v T, err error) (T, error) {
	switch {
	case !r.ended:
		return v, err
	case won, err != nil && fault.Of(r.err).DontRetry && !fault.Of(err).DontRetry:
		r.discard(v, err)
		return r.value, r.err
	default:
		r.discard(r.value, r.err)
		return v, err
	}
}

// waits reports whether the hedge may still win after the first attempt has ended with err.
func (r *race[T]) waits(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancel != nil && !r.ended && err != nil && fault.Of(err).Retryable(true)
}

// end ends the race, and reports whether the hedge has a result or has panicked. Otherwise it
// cancels the hedge; if that panics later, the next call of Hedged panics with its value.
func (r *race[T]) end() (hedged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = true; r.cancel != nil && !r.ended {
		r.cancel()
	}
	return r.ended
}

// fire sends the hedge, and keeps its result if the race goes on. The timer of run calls it.
func (r *race[T]) fire() {
	ctx := r.begin()
	if ctx == nil {
		return
	}
	defer close(r.done)
	v, panics, err := r.try(ctx)
	r.mu.Lock()
	lost := r.over
	if !lost {
		r.ended, r.value, r.panics, r.err = true, v, panics, err
		if err == nil { // the hedge has an answer, or has panicked
			r.first()
		}
	}
	r.mu.Unlock()
	// The hedge has no ticket of the throttle, and for the in-flight limit all outcomes are the same.
	r.hedge.Release(r.hedge.Start, spillway.OutcomeAbandoned)
	if !lost {
		return
	}
	defer r.late.Keep() // the call has returned
	if panics == nil {
		r.discard(v, err)
	}
	r.late.Put(panics)
}

// try calls send. It returns what send panics with, as a panic in this goroutine would end the
// process.
func (r *race[T]) try(ctx context.Context) (v T, panics any, err error) {
	defer func() { panics = recover() }()
	v, err = r.send(ctx, &Attempt{r.hedge.Attempt, r.hedge.Start, &r.hedge})
	return v, nil, err
}

// report reports the hedge to the observer, if there is one.
func (r *race[T]) report(e spillway.Event) {
	o := r.policies.Observer
	if o == nil {
		return
	}
	e.Time, e.Context, e.Policy, e.Call = r.hedge.Start, r.ctx, "hedge", r.call
	e.Call.Attempt = 1
	o.Observe(e)
}

// begin admits the hedge, pays for it, and returns its context: nil if it must not be sent.
func (r *race[T]) begin() (ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if panics := recover(); panics != nil { // a budget panicked; settle panics with it
			r.panics = panics
			r.hedge.InFlight().Settle(r.hedge.Start, spillway.OutcomeAbandoned)
			r.first()
		}
	}()
	p, now := r.policies, time.Now()
	r.hedge.Start = now
	if r.over || r.ctx.Err() != nil || forbidden(r.ctx) || !p.routes.Closed(r.call.Criticality, r.hedge.Route) {
		return nil
	}
	call := r.call
	call.Attempt = 1
	if p.InFlightMode != spillway.ModeOff {
		t, err := p.Gate(call.Key).Admit(now, call)
		if err != nil {
			return nil // not reported to the throttle or to observers, as a hedge is optional
		}
		*r.hedge.InFlight() = t
	}
	if !p.hedge.Pay(now, p.Retry, &call) {
		r.hedge.InFlight().Settle(now, spillway.OutcomeAbandoned)
		r.unpaid = true
		return nil
	}
	ctx, cancel := context.WithCancel(r.ctx) //nolint:gosec // Release calls cancel
	if p.config.InFlight != nil {            // as in Client.run
		ctx = place.With(ctx, r.hedge.InFlight())
	}
	r.cancel = cancel
	r.hedge.Cancel = cancel
	return ctx
}
