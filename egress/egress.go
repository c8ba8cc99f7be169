package egress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// Config configures a [Client]. The zero Config is ready for use: all policies
// with their defaults, enforcing.
type Config struct {
	// Throttle configures adaptive throttling.
	Throttle throttle.Config
	// ThrottleMode says whether the throttle enforces, observes or is off.
	ThrottleMode spillway.Mode

	// MaxRequests is how many attempts may be in flight at once. It bounds both
	// the memory of this process and the queue at the backend: a good value is
	// the rate that the backend can serve times the time that a call may take
	// there (Little's law). Zero means 1024, as in A32 and Envoy.
	MaxRequests int
	// Inflight, if not nil, is used in place of a limiter of the Client's own, so
	// that several Clients share one limit; MaxRequests must then be zero.
	Inflight *inflight.Limiter
	// MaxRequestsByKey gives calls of some keys in-flight limits of their own: they count
	// there, and not against MaxRequests or Inflight. It is for methods whose calls last
	// long and do little, such as streams and long polls. Zero means 1024, negative means
	// no limit.
	MaxRequestsByKey map[string]int
	// InflightMode says whether the in-flight limits enforce, observe or are off.
	InflightMode spillway.Mode

	// Retry decides on retries. A strategy holds the budget, so Clients that are
	// given the same one share it. Nil means [retry.Budgeted] with its defaults:
	// three attempts, retries at most 10 % of the calls.
	Retry retry.Strategy

	// Observer, if not nil, receives each decision. It costs a second clock
	// read per attempt.
	Observer spillway.Observer
}

// The gates of an attempt, in order.
const (
	throttleGate = iota
	inflightGate
	gates
)

type gate struct {
	spillway.Gate
	policy string
	mode   spillway.Mode
}

// A Router names the route of a call: its method, or the path without what names a single
// object. Calls of a route that the backend does not accept are throttled apart from the
// other routes. Route is called only where that matters, at most twice for each attempt.
// The empty route is none.
type Router interface{ Route() string }

// A Client makes calls to one backend. It is safe for concurrent use; make one
// with [New].
type Client struct {
	current  atomic.Pointer[policies]
	update   sync.Mutex     // one Update at a time
	standard retry.Strategy // where none is given; nil until then
}

// policies are what a Client asks for a call, and how. They are replaced as a whole
// by Update; the throttle lives on, and the limit in flight if it is the Client's own.
type policies struct {
	gates    [gates]gate
	throttle *throttle.Routes
	inflight *inflight.Limiter
	shared   bool                         // the limit
	byKey    map[string]*inflight.Limiter // those of some keys
	retry    retry.Strategy
	observer spillway.Observer
}

// New returns a Client, or an error that names the field of c that is wrong.
func New(c Config) (*Client, error) {
	client := new(Client)
	if err := client.Update(c); err != nil {
		return nil, err
	}
	return client, nil
}

// Update changes the configuration of a Client in use, or returns an error that
// names the field that is wrong and changes nothing. What the throttle has learnt is
// kept, and what is in flight stays counted unless Inflight changes. A budget lives
// in its strategy: give the same one again to keep it. Where none is given, the
// Client keeps its own. Calls under way end as they began.
func (c *Client) Update(config Config) error {
	p, err := config.build()
	if err != nil {
		return err
	}
	c.update.Lock()
	defer c.update.Unlock()
	if err := c.fill(p); err != nil {
		return err
	}
	if old := c.current.Load(); old != nil {
		if err := p.adopt(old, &config); err != nil {
			return err
		}
	}
	c.current.Store(p)
	return nil
}

// fill gives p a strategy. The lock is held.
func (c *Client) fill(p *policies) (err error) {
	if p.retry != nil {
		return nil
	}
	if c.standard == nil {
		c.standard, err = newStandard()
	}
	p.retry = c.standard
	return err
}

// build makes all policies, but for the strategy where none is given.
func (c *Config) build() (*policies, error) {
	for _, m := range []struct {
		field string
		mode  spillway.Mode
	}{{"ThrottleMode", c.ThrottleMode}, {"InflightMode", c.InflightMode}} {
		if m.mode > spillway.Off {
			return nil, fmt.Errorf("egress: %s is %d, must be Enforce, Observe or Off", m.field, m.mode)
		}
	}
	th, err := throttle.NewRoutes(c.Throttle)
	if err != nil {
		return nil, fmt.Errorf("egress: Throttle: %w", err)
	}
	limiter, err := c.limiter()
	if err != nil {
		return nil, err
	}
	byKey, err := c.limitersByKey()
	if err != nil {
		return nil, err
	}
	return &policies{
		gates: [gates]gate{
			throttleGate: {nil, "throttle", c.ThrottleMode}, // which depends on the route
			inflightGate: {limiter, "inflight", c.InflightMode},
		},
		throttle: th, inflight: limiter, shared: c.Inflight != nil, byKey: byKey, retry: c.Retry, observer: c.Observer,
	}, nil
}

// adopt replaces the policies of p by the policies of old that live on, and gives
// them the configuration. As each was made of that once, none refuses it.
func (p *policies) adopt(old *policies, c *Config) error {
	if err := old.throttle.Update(c.Throttle); err != nil {
		return err
	}
	p.throttle = old.throttle
	for key, n := range c.MaxRequestsByKey {
		if l := old.byKey[key]; l != nil {
			if err := l.Update(inflight.Config{MaxRequests: n}); err != nil {
				return err
			}
			p.byKey[key] = l
		}
	}
	if p.shared || old.shared {
		return nil
	}
	if err := old.inflight.Update(inflight.Config{MaxRequests: c.MaxRequests}); err != nil {
		return err
	}
	p.inflight, p.gates[inflightGate].Gate = old.inflight, old.inflight
	return nil
}

// newStandard returns the strategy where none is given.
func newStandard() (retry.Strategy, error) {
	s, err := retry.NewBudgeted(retry.BudgetedConfig{})
	if err != nil {
		return nil, fmt.Errorf("egress: Retry: %w", err)
	}
	return s, nil
}

func (c *Config) limiter() (*inflight.Limiter, error) {
	if c.Inflight == nil {
		l, err := inflight.New(inflight.Config{MaxRequests: c.MaxRequests})
		if err != nil {
			return nil, fmt.Errorf("egress: %w", err)
		}
		return l, nil
	}
	if c.MaxRequests != 0 {
		return nil, fmt.Errorf("egress: MaxRequests is %d, must be 0 where Inflight is given", c.MaxRequests)
	}
	return c.Inflight, nil
}

// Do makes the call: it runs send once for each attempt that is admitted, until
// one succeeds or the strategy gives up. send must not keep the Attempt. The criticality of the call, and its
// deadline where ctx has an earlier one, are taken from ctx.
//
// What send returns is classified by [fault.Of]; nil is success. Do returns what
// [retry.Do] does: nil, the error of a first attempt that is not retried, or
// a [retry.Error] that wraps the last real error and says why there was no
// further attempt. A refusal by a policy matches [spillway.ErrRejected].
//
// Where ctx is that of a request that a server of Spillway serves (packages spillhttp,
// spillgrpc), a call that was given up, refused here, or answered with "don't retry" is
// remembered: unless the handler answers a success, the answer to the request says
// "don't retry". So only one layer retries, however many there are.
//
// If send panics, everything that the attempt held is given back and the panic goes on.
func (c *Client) Do(ctx context.Context, call spillway.Call, send func(context.Context, *Attempt) error) error {
	return c.DoRoute(ctx, call, nil, send)
}

// DoRoute is Do for a call whose Key is not its route, which by names; nil means that it is.
func (c *Client) DoRoute(ctx context.Context, call spillway.Call, by Router, send func(context.Context, *Attempt) error) error {
	call.Criticality = spillway.CriticalityFrom(ctx)
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	p := c.current.Load()
	var start time.Time
	if p.observer != nil {
		start = time.Now()
	}
	err := p.attempts(ctx, call, by, send)
	if err != nil && !repeatable(err) {
		final.Set(ctx, err)
	}
	if p.observer != nil {
		p.observer.Observe(callEvent(start, call, err))
	}
	return err
}

// repeatable reports whether err is that of a call that this process would have repeated
// and could not, such as one whose body is gone: its caller may.
func repeatable(err error) bool {
	stopped, ok := errors.AsType[*retry.Error](err)
	return ok && stopped.Attempts == 1 && stopped.Reason == retry.ReasonUnsent && !errors.Is(stopped.Why, spillway.ErrRejected)
}

func (p *policies) attempts(ctx context.Context, call spillway.Call, by Router, send func(context.Context, *Attempt) error) error {
	return retry.Do(ctx, p.retry, call, func(ctx context.Context, r *retry.Attempt) error {
		call.Attempt = int32(r.Number)
		return p.attempt(ctx, call, by, r, send)
	})
}

// callEvent is the one event of the retry policy.
func callEvent(start time.Time, call spillway.Call, err error) spillway.Event {
	call.Attempt = 0
	e := spillway.Event{Time: start, Latency: time.Since(start), Call: call, Policy: "retry", Err: err, Outcome: outcomeOf(err)}
	if stopped, ok := errors.AsType[*retry.Error](err); ok {
		e.Call.Attempt = int32(stopped.Attempts - 1)
	}
	return e
}

// limitersByKey returns the limiters of keys that have one of their own.
func (c *Config) limitersByKey() (map[string]*inflight.Limiter, error) {
	if len(c.MaxRequestsByKey) == 0 {
		return nil, nil //nolint:nilnil // there are none
	}
	all := make(map[string]*inflight.Limiter, len(c.MaxRequestsByKey))
	for key, n := range c.MaxRequestsByKey {
		l, err := inflight.New(inflight.Config{MaxRequests: n})
		if err != nil {
			return nil, fmt.Errorf("egress: MaxRequestsByKey[%q]: %w", key, err)
		}
		all[key] = l
	}
	return all, nil
}

// Stats says how a [Client] stands.
type Stats struct {
	// Throttle is the sum over all routes; a Probability is the greatest of them.
	Throttle throttle.Stats
	// Inflight is the limit of all calls whose key is not in [Config.MaxRequestsByKey], and
	// InflightByKey has the limits of those keys.
	Inflight      inflight.Stats
	InflightByKey map[string]inflight.Stats
}

// Stats returns the levels of the client's policies at the time now.
func (c *Client) Stats(now time.Time) Stats {
	p := c.current.Load()
	s := Stats{Throttle: p.throttle.Stats(now), Inflight: p.inflight.Stats()}
	if len(p.byKey) > 0 {
		s.InflightByKey = make(map[string]inflight.Stats, len(p.byKey))
	}
	for key, l := range p.byKey {
		s.InflightByKey[key] = l.Stats()
	}
	return s
}

// idle reports whether no call is in flight.
func (p *policies) idle() bool {
	for _, l := range p.byKey {
		if l.Stats().InFlight > 0 {
			return false
		}
	}
	return p.inflight.Stats().InFlight == 0
}
