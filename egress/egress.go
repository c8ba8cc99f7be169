package egress

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
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
	// InflightMode says whether the in-flight limit enforces, observes or is off.
	InflightMode spillway.Mode

	// Retry decides on retries. A strategy holds the budget, so Clients that are
	// given the same one share it. Nil means [retry.Budgeted] with its defaults:
	// three attempts, retries at most 10 % of the calls.
	Retry retry.Strategy

	// Observer, if not nil, is told of each decision. It costs a second clock
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

// A Client makes calls to one backend. It is safe for concurrent use; make one
// with [New].
type Client struct {
	gates    [gates]gate
	throttle *throttle.Throttle
	inflight *inflight.Limiter
	retry    retry.Strategy
	observer spillway.Observer
}

// New returns a Client, or an error that names the field of c that is wrong.
func New(c Config) (*Client, error) {
	for _, m := range []struct {
		field string
		mode  spillway.Mode
	}{{"ThrottleMode", c.ThrottleMode}, {"InflightMode", c.InflightMode}} {
		if m.mode > spillway.Off {
			return nil, fmt.Errorf("egress: %s is %d, must be Enforce, Observe or Off", m.field, m.mode)
		}
	}
	th, err := throttle.New(c.Throttle)
	if err != nil {
		return nil, fmt.Errorf("egress: Throttle: %w", err)
	}
	limiter, err := c.limiter()
	if err != nil {
		return nil, err
	}
	if c, err = c.withRetry(); err != nil {
		return nil, err
	}
	return &Client{
		gates: [gates]gate{
			throttleGate: {th, "throttle", c.ThrottleMode},
			inflightGate: {limiter, "inflight", c.InflightMode},
		},
		throttle: th, inflight: limiter, retry: c.Retry, observer: c.Observer,
	}, nil
}

// withRetry returns c with a strategy.
func (c Config) withRetry() (Config, error) {
	if c.Retry != nil {
		return c, nil
	}
	var err error
	if c.Retry, err = retry.NewBudgeted(retry.BudgetedConfig{}); err != nil {
		return c, fmt.Errorf("egress: Retry: %w", err)
	}
	return c, nil
}

func (c Config) limiter() (*inflight.Limiter, error) {
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
// [retry.Do] does: nil, the error of a first attempt that nobody would retry, or
// a [retry.Error] that wraps the last real error and says why there was no
// further attempt. A refusal by a policy matches [spillway.ErrRejected].
//
// If send panics, all that the attempt held is given back and the panic goes on.
func (c *Client) Do(ctx context.Context, call spillway.Call, send func(context.Context, *Attempt) error) error {
	call.Criticality = spillway.CriticalityFrom(ctx)
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	if c.observer == nil {
		return c.attempts(ctx, call, send)
	}
	start := time.Now()
	err := c.attempts(ctx, call, send)
	c.observer.Observe(callEvent(start, call, err))
	return err
}

func (c *Client) attempts(ctx context.Context, call spillway.Call, send func(context.Context, *Attempt) error) error {
	return retry.Do(ctx, c.retry, call, func(ctx context.Context, r *retry.Attempt) error {
		call.Attempt = int32(r.Number)
		return c.attempt(ctx, call, r, send)
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

// Stats says how a [Client] stands.
type Stats struct {
	Throttle throttle.Stats
	Inflight inflight.Stats
}

// Stats returns the levels of the client's policies at the time now.
func (c *Client) Stats(now time.Time) Stats {
	return Stats{Throttle: c.throttle.Stats(now), Inflight: c.inflight.Stats()}
}
