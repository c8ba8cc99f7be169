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
// attempt has no answer when a hedge is due by [Config.Hedge], Hedged makes another attempt
// at the same time. The first answer counts; the context of the other attempt is canceled.
//
// Only calls that Read are hedged, and with [retry.HedgeConfig].Writes those that are Idempotent,
// and only if the throttle limits nothing, the in-flight limit has a slot for the hedge, and all
// budgets of [retry.Hedge] pay for it. A call for a request that is itself a retry or a hedge is
// not hedged, so hedges of several layers add up and do not multiply. Nor is a call for a request
// whose answer will say "don't retry". Only the first attempt of a call is hedged. If it and its
// hedge fail, both count as attempts of the call. The throttle counts them as one, and observers
// see one. They also receive an Event of the policy "hedge" for each hedge that was sent
// (OutcomeServed if its answer counted, else OutcomeAbandoned) or that a budget did not pay for
// (Rejected).
//
// send is called from two goroutines at once. It must not change what the two share, and must
// return soon after its context has ended. The context of the result is canceled when its Hold ends
// ([Attempt.Hold]). discard, if not nil, frees what send has returned for the attempt that does not
// count, or if an Observer panics. It is called from either goroutine. If send or discard panics
// for a hedge after its call had its answer, the next Hedged call of c panics with that.
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
		if answered && !returned { // an Observer panics
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

// A race is a first attempt and its hedge.
type race[T any] struct {
	policies *policies
	late     *late.Panic // of the Client
	call     spillway.Call
	send     func(context.Context, *Attempt) (T, error)
	discard  func(T, error)
	ctx      context.Context    //nolint:containedctx // of both attempts
	first    context.CancelFunc // of the first attempt

	hedge calls.Attempt
	done  chan struct{}

	mu     sync.Mutex
	cancel context.CancelFunc // of the hedge; nil until it is sent
	ended  bool               // and has a result
	over   bool               // the result of the hedge does not count any more
	unpaid bool               // no budget paid for the hedge
	value  T
	err    error
	panics any // of the hedge, which go on in the goroutine of the call
}

// run makes the first attempt, and returns the answer that counts. If anything panics, both answers
// are discarded.
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
		<-r.done // the hedge ends with the context of the call
	}
	won := r.settle(a, err, took, delay)
	returned = true
	return r.choose(won, v, err)
}

// settle ends the race, after the first attempt has ended with err, and reports it. It returns
// whether the hedge has won.
func (r *race[T]) settle(a *Attempt, err error, took, delay time.Duration) (won bool) {
	hedged := r.end()
	if r.unpaid {
		r.report(spillway.Event{Rejected: true})
	}
	if r.panics != nil {
		panic(r.panics) //nolint:forbidigo // it goes on where the caller expects it
	}
	if hedged && r.err == nil { // and the first attempt is canceled, whatever it has returned
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

// choose returns the result of the call, and discards the other one. If both attempts have failed,
// it is that of the first one, unless only the hedge was answered with "don't retry".
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

// end ends the race, and reports whether the hedge has a result or has panicked. If not,
// it is canceled; what it panics with from then on goes on in the next call.
func (r *race[T]) end() (hedged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = true; r.cancel != nil && !r.ended {
		r.cancel()
	}
	return r.ended
}

// fire sends the hedge when it is due.
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
		if err == nil { // or it has panicked
			r.first()
		}
	}
	r.mu.Unlock()
	r.hedge.Release(r.hedge.Start, spillway.OutcomeAbandoned) // the throttle is not told, and the limit takes any outcome
	if !lost {
		return
	}
	defer r.late.Keep() // the call has its answer
	if panics == nil {
		r.discard(v, err)
	}
	r.late.Put(panics)
}

// try calls send, and keeps its panic, which would end the process in this goroutine.
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

// begin admits the hedge and pays for it. The context is nil if it must not be sent.
func (r *race[T]) begin() (ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if panics := recover(); panics != nil { // of a budget; it goes on in the goroutine of the call
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
			return nil // neither the throttle nor an observer hears of it
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
