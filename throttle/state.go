package throttle

import (
	"fmt"

	"github.com/seed90641741/spillway"
)

// A State says in one word what a throttle does with calls of one criticality, for people who
// know circuit breakers. A higher State is a worse one.
type State uint8

// The states.
const (
	// StateClosed: there is no limit, and every call is sent.
	StateClosed State = iota
	// StateThrottling: the backend rejects calls, so calls per second are limited, and calls above
	// the limit are rejected. While fewer calls are made than the limit allows, none is rejected. A
	// circuit breaker has no such state.
	StateThrottling
	// StateProbing: the backend accepts nothing. One call per [Config.ProbeInterval] is sent, and
	// every other call is rejected. A circuit breaker is open or half-open.
	StateProbing
)

var stateNames = [...]string{"closed", "throttling", "probing"}

// String returns closed, throttling or probing.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) {
	if int(s) >= len(stateNames) {
		return nil, fmt.Errorf("throttle: %v has no text form", s)
	}
	return []byte(s.String()), nil
}

// A StateChange is the argument of [Config.OnStateChange].
type StateChange struct {
	// Backend is the key of the backend in an egress.Pool, and empty elsewhere.
	Backend string
	// Route is the route whose throttle has changed. It is empty for the throttle of the
	// backend as a whole, and [OtherRoutes] for the one that routes of few calls share.
	Route string
	// Criticality is the class of the calls.
	Criticality spillway.Criticality
	// From and To are the states before and after.
	From, To State
	// Probability is the share of calls that is rejected from now on, from 0 to 1.
	Probability float64
}

// OtherRoutes is the Route of a [StateChange] of the throttle that routes of few calls share.
const OtherRoutes = "(others)"

// of returns c for the throttle of a route.
func (c Config) of(route string) Config {
	if hook := c.OnStateChange; hook != nil {
		c.OnStateChange = func(s StateChange) {
			s.Route = route
			hook(s)
		}
	}
	return c
}

// change compares the state of a class with the state that OnStateChange was last called with.
type change struct {
	state     State
	reported  State
	reporting bool // whether a goroutine calls OnStateChange now; it also reports later changes
}

// unlock unlocks the class, and reports that its state has changed, if it has.
func (c *class) unlock() {
	c.rest()
	if c.change.state == c.change.reported {
		c.mu.Unlock()
		return
	}
	c.reportAndUnlock()
}

func (c *class) reportAndUnlock() {
	defer c.mu.Unlock()
	for c.change.state != c.change.reported && !c.change.reporting && c.cfg.OnStateChange != nil {
		c.report()
	}
}

// report calls OnStateChange with the current state. It gives up the lock, which the caller holds,
// during that call.
func (c *class) report() {
	s := StateChange{Criticality: c.criticality, From: c.change.reported, To: c.change.state, Probability: max(0, c.probability())}
	hook := c.cfg.OnStateChange
	c.change.reported, c.change.reporting = s.To, true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.change.reporting = false
	}()
	hook(s)
}

// stateOf returns the state of a limiter that rejects calls with the probability p.
func stateOf(p float64, l *limiter) State {
	switch {
	case p == noLimit:
		return StateClosed
	case l.phase == silent && l.streak.accepts == 0:
		return StateProbing
	default:
		return StateThrottling
	}
}
