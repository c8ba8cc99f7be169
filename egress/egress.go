package egress

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/late"
	"github.com/seed90641741/spillway/internal/place"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// A Client makes calls to one backend. It is safe for concurrent use; make one
// with [New].
type Client struct {
	current  atomic.Pointer[policies]
	clock    clock.Clock
	update   sync.Mutex     // one Update at a time
	standard retry.Strategy // the strategy for a nil Config.Retry; nil until it is needed
	panicked late.Panic     // of a hedge after its call; the next Hedged panics with it
}

// policies are one configuration of a Client. Update replaces them as a whole. The new ones take
// over the throttle, and the in-flight limit unless it is Config.InFlight.
type policies struct {
	calls.Policies

	config  Config
	routes  *throttle.Routes
	limiter *inflight.Limiter
	hedge   *retry.Hedge // nil: no hedges
}

// A Router names the route of a call: its method, or its path without the names of single objects.
// If the backend rejects calls of one route only, only that route is throttled. Route is called
// only when needed, at most twice for each attempt. The empty route is no route.
type Router interface{ Route() string }

// New returns a Client, or an error that names the field of c that is wrong.
func New(c Config) (*Client, error) {
	client := new(Client)
	if err := client.Update(c); err != nil {
		return nil, err
	}
	return client, nil
}

// Update changes the configuration of a Client in use, or returns an error that names the field
// that is wrong and changes nothing. The throttle keeps its state, and calls in flight stay counted
// unless InFlight changes. A budget belongs to its strategy: pass the same one again to keep it. If
// Retry is nil, the Client keeps its default strategy. Calls in flight end under the old
// configuration.
func (c *Client) Update(config Config) error {
	c.update.Lock()
	defer c.update.Unlock()
	if config.Retry == nil {
		if c.standard == nil {
			c.standard = newStandard()
		}
		config.Retry = c.standard
	}
	p, err := config.build()
	if err != nil {
		return err
	}
	if old := c.current.Load(); old != nil {
		if err := p.adopt(old); err != nil {
			return err
		}
	}
	c.current.Store(p)
	return nil
}

// adopt replaces policies of p by those of old that go on, and updates their configuration. That
// returns no error, as build has made policies of the same configuration.
func (p *policies) adopt(old *policies) error {
	c := &p.config
	err := old.routes.Update(c.Throttle)
	p.routes, p.Throttle, p.Usual, p.Shares = old.routes, old.routes, old.Usual, old.Shares
	if c.Hedge == old.config.Hedge {
		p.hedge = old.hedge
	}
	for key, n := range c.MaxInFlightByKey {
		if l := old.InFlightByKey[key]; l != nil {
			err = errors.Join(err, l.Update(inflight.Config{MaxInFlight: n}))
			p.InFlightByKey[key] = l
		}
	}
	if c.InFlight != nil || old.config.InFlight != nil {
		return err
	}
	p.limiter, p.InFlight = old.limiter, old.limiter
	return errors.Join(err, old.limiter.Update(inflight.Config{MaxInFlight: c.MaxInFlight}))
}

// Do makes the call: it runs send once for each attempt that is admitted, until one succeeds or the
// strategy gives up. send must not keep the Attempt. The criticality of the call is that of ctx,
// and so is its deadline if that of ctx is earlier. If ctx carries a [spillway.Task], the level and
// the progress of the call are those of the task, and the task counts the call when it is served.
//
// The error of send is classified by [fault.Of]; nil is success. Do returns the errors of
// [retry.Do]: nil, the error of a first attempt that is not retried, or a [retry.Error] that
// wraps the last real error and says why there was no further attempt. A rejection by a policy
// matches [spillway.ErrRejected].
//
// If ctx belongs to a request that a server of Spillway serves (packages spillhttp, spillgrpc), a
// call that was given up, rejected here, or answered with "don't retry" is recorded: unless the
// handler answers with success, the answer to the request says "don't retry". So only one of
// several layers retries.
//
// If send panics, all slots and tokens of the attempt are released and the panic continues.
func (c *Client) Do(ctx context.Context, call spillway.Call, send func(context.Context, *Attempt) error) error {
	call.Criticality = spillway.CriticalityFrom(ctx)
	return c.do(ctx, &call, nil, send)
}

// DoRoute is Do for adapters that know more about the call. The criticality is that of call and not
// that of ctx. The route is that of by, or the Key of call if by is nil.
func (c *Client) DoRoute(ctx context.Context, call spillway.Call, by Router, send func(context.Context, *Attempt) error) error {
	return c.do(ctx, &call, by, send)
}

func (c *Client) do(ctx context.Context, call *spillway.Call, by Router, send func(context.Context, *Attempt) error) error {
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	p := c.current.Load()
	f := flows.Get().(*flow)
	task := spillway.TaskFrom(ctx)
	if f.Task = task; task != nil {
		call.Level, call.Progress = task.Level(), task.Progress()
	}
	var start time.Time
	if p.Observer != nil {
		start, f.Context = c.clock.Now(), ctx
	}
	step := c.drive(ctx, p, f, call, by, send)
	attempt := f.Call.Attempt
	*f = flow{}
	flows.Put(f)
	switch {
	case step.Err == nil:
		task.Served()
	case step.Final():
		final.Of(ctx).Set()
	}
	if p.Observer != nil {
		call.Attempt = attempt
		p.Observer.Observe(callEvent(ctx, start, *call, step.Err))
	}
	return step.Err
}

// A flow is a call, and its current attempt as send receives it.
type flow struct {
	calls.Flow

	attempt Attempt
}

var flows = sync.Pool{New: func() any { return new(flow) }}

// drive takes a call through its steps: it waits, reads the clock, and makes the attempts. If
// anything panics, such as send or an Observer, it gives back the slots and tokens of the call.
func (c *Client) drive(
	ctx context.Context, p *policies, f *flow, call *spillway.Call, by Router, send func(context.Context, *Attempt) error,
) (step calls.Step) {
	ended := false
	defer func() {
		if !ended {
			f.Abort()
		}
	}()
	step = f.Begin(&p.Policies, call, by)
	for {
		switch step.Action {
		case calls.Run:
			step = c.run(ctx, p, f, send)
		case calls.Wait:
			step = f.Wait(ctx, &c.clock, step.Wait)
		default:
			ended = true
			return step
		}
	}
}

// run makes one attempt.
func (c *Client) run(ctx context.Context, p *policies, f *flow, send func(context.Context, *Attempt) error) calls.Step {
	if p.config.InFlight != nil { // a transport with the same limiter must not count the call again
		ctx = place.With(ctx, f.InFlight())
	}
	f.attempt = Attempt{f.Attempt.Attempt, f.Start, &f.Attempt}
	switch err := send(ctx, &f.attempt); {
	case err != nil:
		return c.fail(ctx, f, err)
	case f.Timed():
		return f.Succeed(c.clock.Now())
	default:
		return f.Succeed(f.Start)
	}
}

// fail ends an attempt that has failed with err.
func (c *Client) fail(ctx context.Context, f *flow, err error) calls.Step {
	now := c.clock.Now()
	e := calls.Failure{Err: err, Failure: fault.Of(err), ContextErr: ctx.Err()}
	e.UntrustedDeadline = e.Timeout && claims.UntrustedExpired(ctx, f.Start, now) || e.TooLate && claims.Untrusted(ctx)
	return f.Fail(now, e)
}

// callEvent returns the event of the retry policy, one for each call. call has the number of its
// last attempt, which was not sent if a policy of this process rejected it.
func callEvent(ctx context.Context, start time.Time, call spillway.Call, err error) spillway.Event {
	e := spillway.Event{Time: start, Latency: time.Since(start), Context: ctx, Call: call, Policy: "retry", Err: err, Outcome: spillway.OutcomeServed}
	if err != nil {
		e.Outcome, e.Call.Attempt = calls.OutcomeOf(fault.Of(err)), 0
	}
	if stopped, ok := errors.AsType[*retry.Error](err); ok {
		e.Call.Attempt = int16(min(stopped.Attempts-1, math.MaxInt16))
	}
	return e
}

// Stats is the state of the policies of a [Client].
type Stats struct {
	// Throttle has the totals of all routes, and the worst State, Probability and Limit: see
	// [throttle.Routes.Stats].
	Throttle throttle.Stats
	// InFlight is the limit of all calls whose key is not in [Config.MaxInFlightByKey], and
	// InFlightByKey has the limits of those keys.
	InFlight      inflight.Stats
	InFlightByKey map[string]inflight.Stats
	// Hedge is zero without hedged requests.
	Hedge retry.HedgeStats
}

// Stats returns the levels of the client's policies at the time now.
func (c *Client) Stats(now time.Time) Stats {
	p := c.current.Load()
	s := Stats{Throttle: p.routes.Stats(now), InFlight: p.limiter.Stats(now)}
	if len(p.InFlightByKey) > 0 {
		s.InFlightByKey = make(map[string]inflight.Stats, len(p.InFlightByKey))
	}
	for key, l := range p.InFlightByKey {
		s.InFlightByKey[key] = l.Stats(now)
	}
	if p.hedge != nil {
		s.Hedge = p.hedge.Stats(now)
	}
	return s
}

// idle reports whether no call is in flight.
func (p *policies) idle() bool {
	for _, l := range p.InFlightByKey {
		if l.Stats(time.Now()).InFlight > 0 {
			return false
		}
	}
	return p.limiter.Stats(time.Now()).InFlight == 0
}
