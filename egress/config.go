package egress

import (
	"fmt"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/invalid"
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

	// MaxInFlight is the maximum number of attempts in flight. It limits both the memory of
	// this process and the queue at the backend: a good value is the rate that the backend can
	// serve times the time that a call may take there (Little's law). Zero means 1024, as in
	// A32 and Envoy.
	MaxInFlight int
	// InFlight, if not nil, replaces the limiter of the Client, so that several Clients share one
	// limit. MaxInFlight must then be zero.
	InFlight *inflight.Limiter
	// MaxInFlightByKey sets separate in-flight limits for calls with these keys
	// ([spillway.Call].Key). Such calls do not count against MaxInFlight or InFlight. It is for
	// methods whose calls last long and do little, such as streams and long polls. A limit of zero
	// means 1024, a negative one means no limit.
	MaxInFlightByKey map[string]int
	// InFlightMode says whether the in-flight limits enforce, observe or are off.
	InFlightMode spillway.Mode

	// Retry decides on retries. A strategy holds the retry budget, so Clients with the same
	// strategy share it. Nil means [retry.Budgeted] with its defaults: at most three attempts per
	// call, and retries for at most 10 % of the calls.
	Retry retry.Strategy

	// Hedge configures hedged requests for adapters that send them: [Hedged] says which calls
	// are hedged. The zero value disables hedging. The budget of Retry must pay for hedges
	// ([retry.PaysHedges]).
	Hedge retry.HedgeConfig

	// Observer, if not nil, receives each decision. It costs a second clock
	// read per attempt.
	Observer spillway.Observer
}

// build makes all policies, or returns an error that names the bad field. c.Retry must not be nil.
func (c Config) build() (p *policies, err error) {
	for _, m := range []struct {
		field string
		mode  spillway.Mode
	}{{"ThrottleMode", c.ThrottleMode}, {"InFlightMode", c.InFlightMode}} {
		if m.mode > spillway.ModeOff {
			return nil, invalid.Field("egress", m.field, m.mode, "Enforce, Observe or Off")
		}
	}
	p = &policies{config: c}
	if p.routes, err = throttle.NewRoutes(c.Throttle); err != nil {
		return nil, invalid.In("egress", "Throttle", err)
	}
	if p.limiter, err = c.limiter(); err != nil {
		return nil, err
	}
	byKey := make(map[string]*inflight.Limiter, len(c.MaxInFlightByKey))
	for key, n := range c.MaxInFlightByKey {
		if byKey[key], err = inflight.New(inflight.Config{MaxInFlight: n}); err != nil {
			return nil, invalid.At("egress", fmt.Sprintf("MaxInFlightByKey[%q]", key), err)
		}
	}
	if c.Hedge != (retry.HedgeConfig{}) {
		if !retry.PaysHedges(c.Retry) {
			return nil, invalid.Field("egress", "Hedge", c.Hedge, "zero, as the budget of this Retry pays for no hedges")
		}
		if p.hedge, err = retry.NewHedge(c.Hedge); err != nil {
			return nil, invalid.In("egress", "Hedge", err)
		}
	}
	p.Policies = calls.Policies{
		Throttle: p.routes, ThrottleMode: c.ThrottleMode,
		InFlight: p.limiter, InFlightByKey: byKey, InFlightMode: c.InFlightMode,
		Retry: c.Retry, Observer: c.Observer, Usual: new(calls.Usual), Shares: new(calls.Shares),
	}
	return p, nil
}

// newStandard returns the default strategy.
func newStandard() retry.Strategy {
	s, _ := retry.NewBudgeted(retry.BudgetedConfig{}) // its defaults are valid
	return s
}

func (c *Config) limiter() (*inflight.Limiter, error) {
	if c.InFlight == nil {
		l, err := inflight.New(inflight.Config{MaxInFlight: c.MaxInFlight})
		return l, invalid.In("egress", "", err)
	}
	if c.MaxInFlight != 0 {
		return nil, invalid.Field("egress", "MaxInFlight", c.MaxInFlight, "0 where InFlight is given")
	}
	return c.InFlight, nil
}
