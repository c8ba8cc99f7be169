package requests

import (
	"cmp"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
)

// settings are the policies of a Core and how they are used. Update replaces them as a whole; the
// policies in them live on. They do not change once the Core has them.
type settings struct {
	core      *Core
	config    Config               // with its defaults
	ends      endObserver          // the Observer, or nil if it is none
	modes     [gates]spillway.Mode // ModeOff also for a gate without a limit
	queues    bool                 // a gate with a queue is not off
	limiter   *ratelimit.Limiter
	quota     *quota.Quota        // nil: none
	baseCost  float64             // what the quota charges when it admits a request, in its unit
	shedders  [gates]Shedder      // of flightGate and shedGate; the others are zero
	histogram *attempts.Histogram // of all requests, used if Config.Internal is set
	customers *attempts.Customers // used otherwise
}

// An endObserver learns how each request has ended.
type endObserver interface{ ObserveEnd(e spillway.Event) }

// build makes all policies. It is the only way from a Config to them.
func build(c Config) (*settings, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &settings{config: c, modes: c.Modes.byGate()}
	s.ends, _ = c.Observer.(endObserver) // nil if the Observer has no such method
	if c.RateLimit.Rate <= 0 {
		s.modes[limitGate] = spillway.ModeOff
	}
	if s.limiter, err = ratelimit.New(c.RateLimit); err != nil {
		return nil, invalid.In(stack, "RateLimit", err)
	}
	if c.Quota.Allocator == nil {
		s.modes[quotaGate] = spillway.ModeOff
	} else if s.quota, err = quota.New(c.Quota); err != nil {
		return nil, invalid.In(stack, "Quota", err)
	}
	s.baseCost = max(cmp.Or(c.Quota.Cost, 1), 0)
	if c.MaxInFlight <= 0 {
		s.modes[flightGate] = spillway.ModeOff
	}
	s.queues = s.modes[flightGate] != spillway.ModeOff || s.modes[shedGate] != spillway.ModeOff
	if s.shedders[shedGate], err = newShedder(c.Shed, c.Concurrency, s.modes[shedGate]); err != nil {
		return nil, err
	}
	flightShed, flightLimit := c.flight()
	if s.shedders[flightGate], err = newShedder(flightShed, flightLimit, s.modes[flightGate]); err != nil {
		return nil, invalid.At(stack, "MaxInFlight", err)
	}
	if s.histogram, err = attempts.New(c.Attempts); err != nil {
		return nil, invalid.In(stack, "Attempts", err)
	}
	if s.customers, err = attempts.NewCustomers(c.Attempts, 0); err != nil {
		return nil, invalid.In(stack, "Attempts", err)
	}
	return s, nil
}

// adopt gives the policies of old, which live on, the configuration of s, and puts them into s in
// place of the new ones. New policies were made with that configuration before, so none of the old
// ones returns an error.
func (s *settings) adopt(old *settings) error {
	flightShed, flightLimit := s.config.flight()
	for _, gate := range [...]int{flightGate, shedGate} {
		s.shedders[gate] = s.shedders[gate].adopt(old.shedders[gate])
	}
	err := errors.Join(
		old.limiter.Update(s.config.RateLimit),
		s.shedders[flightGate].update(flightShed, flightLimit),
		s.shedders[shedGate].update(s.config.Shed, s.config.Concurrency),
		old.histogram.Update(s.config.Attempts),
		old.customers.Update(s.config.Attempts),
	)
	if s.quota != nil && old.quota != nil {
		err = errors.Join(err, old.quota.Update(s.config.Quota))
		s.quota = old.quota
	}
	s.limiter, s.histogram, s.customers = old.limiter, old.histogram, old.customers
	return err
}

// countAttempt counts the attempt number of a request. At an edge, clients can claim any number, so
// it counts for the customer only.
func (s *settings) countAttempt(now time.Time, call *spillway.Call) {
	switch {
	case s.config.Internal:
		s.histogram.Observe(now, int(call.Attempt))
	case call.Customer != "":
		s.customers.Observe(now, call.Customer, int(call.Attempt))
	}
}

// dontRetry reports whether a rejection of the call says "don't retry".
func (s *settings) dontRetry(now time.Time, call *spillway.Call) bool {
	if s.config.Internal {
		return s.histogram.DontRetry(now)
	}
	return call.Customer != "" && s.customers.DontRetry(now, call.Customer)
}

// draw gives a call without a level a random one.
func (s *settings) draw(call *spillway.Call) {
	if !call.Level.Valid() {
		call.Level = spillway.Level(s.config.Rand()*spillway.Levels) + 1
	}
}

// named returns the call as the limit of the shedder knows it, by the name of what it waits for.
// The name is looked up when the request arrives. To look it up when a waiter is let in would
// have a panic of LimitKey in a goroutine of the shell, where no caller could recover from it.
func (s *settings) named(call *spillway.Call) spillway.Call {
	named := *call
	named.Key = s.config.LimitKey(call.Key)
	return named
}
