package ingress

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// Config configures a [Server]. The zero Config is ready for use: it sheds by
// criticality when the server is overloaded, and knows no limits.
type Config struct {
	// RateLimit limits all requests per second. The zero value means no limit.
	RateLimit ratelimit.Config
	// Quota limits the use of each customer. Without an Allocator there is no quota.
	Quota quota.Config
	// Costs, if not nil, learns the cost of requests, in processor time of this process.
	// The quota charges it in place of Quota.Cost once it is known. Rates and capacities of the
	// Allocator are then in the unit of Costs: milliseconds of processor time per second, by default. Servers of
	// one process should share one Estimator.
	Costs *cost.Estimator
	// CostKey returns the route whose cost is learned, or "". It is called once for each request and must be quick
	// and safe for concurrent use. It must return no name that clients invent. Nil means that the cost of each
	// customer is learned, customers that the Allocator of the quota knows first.
	CostKey func(spillway.Call) string
	// MaxInFlight is the maximum number of requests at work at once. Others wait, and are
	// rejected, in the order of their criticality. The server measures by itself how many
	// requests it can run; this limit is for resources that it does not measure, such as the
	// memory of a request. A request that waits for its client is not at work. Zero and
	// negative mean no limit.
	MaxInFlight int
	// Shed configures the rejection of requests when the server is overloaded. Its Limit is
	// made of Concurrency.
	Shed shed.Config
	// Concurrency limits, for each key, the requests that wait for something other than a
	// processor.
	Concurrency concurrency.Config
	// LimitKey returns the name of what requests with a Call.Key wait for. Keys with the same name share a limit of Concurrency,
	// where their classes are served in order, and Concurrency.MaxInFlightByKey has these names. It must be quick and safe for
	// concurrent use. Nil means that the name is the key.
	LimitKey func(key string) string
	// ProxyOnly says that this process only forwards requests to another one, which does the
	// work: the number of runnable goroutines here then says nothing about the load of that
	// process. Shed then depends on requests in flight only.
	ProxyOnly bool
	// Load configures the measures of the process that Shed uses.
	Load load.Config
	// RateLimitMode, QuotaMode, InFlightMode and ShedMode say whether each of these
	// gates enforces, observes or is off.
	RateLimitMode, QuotaMode, InFlightMode, ShedMode spillway.Mode

	// Attempts says when rejections say "don't retry".
	Attempts attempts.Config
	// Trust says where requests come from, and so how far their claims are trusted.
	Trust Trust

	// Exempt reports whether a request bypasses all gates: health checks, metrics. It is
	// called first with the Call, must be quick and safe for concurrent use, and should not
	// depend on values that clients can choose freely. Nil exempts nothing.
	Exempt func(spillway.Call) bool

	// RetryAfter is the hint in a rejection for overload, before jitter: the hint that is sent
	// is this value ±50 %. With a lower value clients find free capacity sooner; with a higher
	// value fewer requests are rejected. Zero means 1 s; it must be 1 ms to 1 h.
	RetryAfter time.Duration

	// Rand returns a number in [0, 1) and is safe for concurrent use. Nil means
	// [rand.Float64]. It draws the levels of calls that have none, and is also used for Shed, unless Shed.Rand is set.
	Rand func() float64

	// Observer, if not nil, observes each decision: one event for each request
	// and gate that decided. An [EndObserver] also learns how each request has ended.
	Observer spillway.Observer
}

func (c Config) withDefaults() (Config, error) {
	c.RetryAfter = cmp.Or(c.RetryAfter, time.Second)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Shed.Rand == nil {
		c.Shed.Rand = c.Rand
	}
	for gate, mode := range c.modes() {
		if mode > spillway.ModeOff {
			return c, invalid.Field("ingress", modeFields[gate], mode, "Enforce, Observe or Off")
		}
	}
	if c.RetryAfter < time.Millisecond || c.RetryAfter > time.Hour {
		return c, invalid.Field("ingress", "RetryAfter", c.RetryAfter, "1ms to 1h")
	}
	if c.MaxInFlight > math.MaxInt32 {
		return c, invalid.Field("ingress", "MaxInFlight", c.MaxInFlight, "at most %d", math.MaxInt32)
	}
	var err error
	c.Trust, err = c.Trust.withDefaults()
	return c, err
}

var modeFields = [gates]string{"RateLimitMode", "QuotaMode", "InFlightMode", "ShedMode"}

func (c *Config) modes() [gates]spillway.Mode {
	return [gates]spillway.Mode{c.RateLimitMode, c.QuotaMode, c.InFlightMode, c.ShedMode}
}

// settings are the policies of a Server and how they are used. They are replaced
// as a whole by Update; the policies in them live on.
type settings struct {
	core      *Core
	config    Config
	ends      EndObserver          // nil: the Observer is none
	modes     [gates]spillway.Mode // Off also where there is nothing to ask
	queues    bool                 // there is a gate with a queue
	limiter   *ratelimit.Limiter
	quota     *quota.Quota        // nil: none
	baseCost  float64             // what it charges when it admits a request
	shedders  [gates]shedder      // of two gates: at most MaxInFlight, and as many as make sense
	histogram *attempts.Histogram // inside
	customers *attempts.Customers // at the edge
}

// build makes all policies.
func build(c Config) (*settings, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &settings{config: c, modes: c.modes()}
	s.ends, _ = c.Observer.(EndObserver)
	if c.RateLimit.Rate <= 0 {
		s.modes[limitGate] = spillway.ModeOff
	}
	if s.limiter, err = ratelimit.New(c.RateLimit); err != nil {
		return nil, invalid.In("ingress", "RateLimit", err)
	}
	if c.Quota.Allocator == nil {
		s.modes[quotaGate] = spillway.ModeOff
	} else if s.quota, err = quota.New(c.Quota); err != nil {
		return nil, invalid.In("ingress", "Quota", err)
	}
	s.baseCost = max(cmp.Or(c.Quota.Cost, 1), 0)
	if c.MaxInFlight <= 0 {
		s.modes[flightGate] = spillway.ModeOff
	}
	s.queues = s.modes[flightGate] != spillway.ModeOff || s.modes[shedGate] != spillway.ModeOff
	if s.shedders[shedGate], err = newShedder(c.Shed, c.Concurrency, s.modes[shedGate]); err != nil {
		return nil, err
	}
	flightShed, flightLimit := s.config.flight()
	if s.shedders[flightGate], err = newShedder(flightShed, flightLimit, s.modes[flightGate]); err != nil {
		return nil, invalid.At("ingress", "MaxInFlight", err)
	}
	if s.histogram, err = attempts.New(c.Attempts); err != nil {
		return nil, invalid.In("ingress", "Attempts", err)
	}
	if s.customers, err = attempts.NewCustomers(c.Attempts, 0); err != nil {
		return nil, invalid.In("ingress", "Attempts", err)
	}
	return s, nil
}

// meter returns the configuration of the measures.
func (c *Config) meter() load.Config {
	l := c.Load
	l.Reference = cmp.Or(l.Reference, load.Thresholds(c.Shed.Thresholds)) // the zero value means the same to both
	return l
}

// flight returns the configuration of the shedder of MaxInFlight: no load counts there.
func (c *Config) flight() (shed.Config, concurrency.Config) {
	return shed.Config{MaxWait: c.Shed.MaxWait, Rand: c.Shed.Rand, Policy: gateNames[flightGate], Advice: "raise MaxInFlight if the server can bear more"},
		concurrency.Config{MaxInFlight: c.MaxInFlight, Fixed: true, MaxKeys: 1}
}

// adopt gives the policies of old, which live on, the configuration of s, and
// puts them in place of the new ones. As each was made with that configuration
// once, none returns an error.
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

// observe counts the attempt number of a request where it is believed: inside
// for all, at the edge for the customer only.
func (s *settings) observe(now time.Time, call *spillway.Call) {
	switch {
	case s.config.Trust.Boundary == Internal:
		s.histogram.Observe(now, int(call.Attempt))
	case call.Customer != "":
		s.customers.Observe(now, call.Customer, int(call.Attempt))
	}
}

// draw gives a call without a level a random one.
func (s *settings) draw(call *spillway.Call) {
	if !call.Level.Valid() {
		call.Level = spillway.Level(s.config.Rand()*spillway.Levels) + 1
	}
}

func (s *settings) dontRetry(now time.Time, call *spillway.Call) bool {
	if s.config.Trust.Boundary == Internal {
		return s.histogram.DontRetry(now)
	}
	return call.Customer != "" && s.customers.DontRetry(now, call.Customer)
}

func (s *settings) exempt(call *spillway.Call) bool {
	return s.config.Exempt != nil && s.config.Exempt(*call)
}
