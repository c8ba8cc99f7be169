package egress

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// Hedged makes a call as [Client.Do] does, and returns the result of send. If the first attempt
// has no answer when a hedge is due, Hedged makes another attempt at the same time. The first
// answer counts; the context of the other attempt is canceled.
//
// Only calls that are Idempotent or a Read are hedged, and only if the throttle limits nothing,
// the in-flight limit has a place for the hedge, and all budgets of h pay for it. A call for a
// request that is itself a retry or a hedge is not hedged, so hedges of several layers add up
// and do not multiply. Only the first attempt of a call is hedged. If it and its hedge fail,
// both count as attempts of the call. The throttle counts them as one, and observers see one;
// [retry.Hedge.Stats] has the hedges.
//
// send is called from two goroutines at once. It must not change what the two share, must not
// panic, and must return soon after its context has ended. The context of the result is
// canceled when its place in flight is given back ([Attempt.Hold]). discard, if not nil, frees
// the result of an attempt that succeeded too late.
func Hedged[T any](
	ctx context.Context, h *retry.Hedge, c *Client, call spillway.Call, send func(context.Context, *Attempt) (T, error), discard func(T),
) (T, error) {
	var value T
	call.Criticality = spillway.CriticalityFrom(ctx)
	err := c.do(ctx, &call, nil, func(ctx context.Context, a *Attempt) (err error) {
		value, err = attemptHedged(ctx, h, c.current.Load(), &call, a, send, discard)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// attemptHedged makes an attempt, hedged if that is allowed.
func attemptHedged[T any](
	ctx context.Context, h *retry.Hedge, p *policies, call *spillway.Call, a *Attempt, send func(context.Context, *Attempt) (T, error), discard func(T),
) (T, error) {
	mark := final.Of(ctx)
	if a.Number > 0 || !call.Idempotent && call.Kind != spillway.KindRead || mark != nil && mark.Repeated {
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
	r := &race[T]{hedge: h, policies: p, call: *call, send: send, discard: discard, ctx: ctx, done: make(chan struct{})}
	r.attempt.Attempt = &retry.Attempt{Number: 1}
	r.attempt.accepts = 1
	return r.run(a, delay)
}

// A race is a first attempt and its hedge.
type race[T any] struct {
	hedge    *retry.Hedge
	policies *policies
	call     spillway.Call
	send     func(context.Context, *Attempt) (T, error)
	discard  func(T)
	ctx      context.Context //nolint:containedctx // of both attempts

	attempt Attempt // the hedge
	done    chan struct{}

	mu     sync.Mutex
	sent   bool // the hedge
	ended  bool // and has a result
	over   bool // the call has its answer, or another one than the hedge's
	value  T
	err    error
	cancel context.CancelFunc // of the hedge
	first  context.CancelFunc // of the first attempt
}

// run makes the first attempt, and returns the answer that counts.
func (r *race[T]) run(a *Attempt, delay time.Duration) (T, error) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.first = cancel
	cancelWith(a, cancel)
	timer := time.AfterFunc(delay, r.fire)
	returned := false
	defer func() {
		if timer.Stop(); !returned {
			r.stop()
		}
	}()
	v, err := r.send(ctx, a)
	returned = true
	took := time.Since(a.Start)
	won, waits := r.compare(err)
	if waits {
		<-r.done // the hedge ends with the context of the call
		won = r.err == nil
	}
	switch {
	case won:
		a.accepts = r.attempt.accepts
		r.hedge.Settle(true)
		r.hedge.Answered(time.Since(a.Start), true)
		return r.value, nil
	case err == nil:
		r.hedge.Answered(took, took >= delay)
		r.discardLate()
	case r.sent:
		a.Number++ // two attempts have failed
		if waits && fault.Of(r.err).DontRetry {
			err = r.err
		}
	}
	return v, err
}

// compare returns, when the first attempt has ended with err, whether the hedge has won, and
// whether it may still win. Otherwise it ends the hedge.
func (r *race[T]) compare(err error) (won, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	won = r.ended && r.err == nil && err != nil
	waits = r.sent && !r.ended && err != nil && mayFollow(err)
	r.over = !won && !waits
	if r.over && r.sent {
		r.cancel()
	}
	return won, waits
}

// stop ends the hedge after the first attempt has panicked.
func (r *race[T]) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = true; r.sent {
		r.cancel()
	}
}

// discardLate frees the result of a hedge that has succeeded together with the first attempt.
func (r *race[T]) discardLate() {
	r.mu.Lock()
	late := r.ended && r.err == nil && r.discard != nil
	r.mu.Unlock()
	if late {
		r.discard(r.value)
	}
}

// mayFollow reports whether the answer of a hedge is worth waiting for after a failure.
func mayFollow(err error) bool { return fault.Of(err).Retryable(true) }

// fire sends the hedge when it is due.
func (r *race[T]) fire() {
	ctx, ok := r.begin()
	if !ok {
		return
	}
	v, err := r.send(ctx, &r.attempt)
	r.mu.Lock()
	late := r.over
	if !late {
		r.ended, r.value, r.err = true, v, err
	}
	if err == nil && !late {
		r.first()
	}
	r.mu.Unlock()
	o := spillway.OutcomeAbandoned // the throttle is not told, and the limit takes any
	r.attempt.tickets[inflightGate].Settle(r.attempt.Start, o)
	close(r.done)
	if late && err == nil && r.discard != nil {
		r.discard(v)
	}
}

// begin admits the hedge and pays for it.
func (r *race[T]) begin() (context.Context, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, now := r.policies, time.Now()
	if r.over || r.ctx.Err() != nil || !p.routes.Closed(r.call.Criticality, throttle.Route{Name: r.call.Key}) {
		return nil, false
	}
	call := r.call
	call.Attempt = 1
	if p.InflightMode != spillway.ModeOff {
		t, err := p.gate(call.Key).Admit(now, call)
		if err != nil {
			return nil, false // neither the throttle nor an observer hears of it
		}
		r.attempt.tickets[inflightGate] = t
	}
	if !r.hedge.Pay(now, p.Retry, &call) {
		r.attempt.tickets[inflightGate].Settle(now, spillway.OutcomeAbandoned)
		return nil, false
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.attempt.Start, r.sent, r.cancel = now, true, cancel
	cancelWith(&r.attempt, cancel)
	return ctx, true
}

// gate returns the in-flight limit of calls with a key.
func (p *Policies) gate(key string) spillway.Gate {
	if l := p.InflightByKey[key]; l != nil {
		return l
	}
	return p.Inflight
}

// cancelWith has the context of an attempt canceled when its place in flight is given back.
func cancelWith(a *Attempt, cancel context.CancelFunc) {
	t := &a.tickets[inflightGate]
	*t = spillway.Ticket{By: &canceler{*t, cancel}, Criticality: t.Criticality}
}

// A canceler is the Settler of a place in flight with a context.
type canceler struct {
	ticket spillway.Ticket
	cancel context.CancelFunc
}

// Settle implements [spillway.Settler].
func (c *canceler) Settle(now time.Time, _ spillway.Ticket, o spillway.Outcome) {
	c.ticket.Settle(now, o)
	c.cancel()
}
