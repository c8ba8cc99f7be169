package requests

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// Config is what a [Core] needs of the Config of package ingress, whose doc describes the fields.
// It has all of them but Load, which is for the measures of a process, and Trust.
type Config struct {
	RateLimit   ratelimit.Config
	Quota       quota.Config // without an Allocator there is no quota
	Costs       *cost.Estimator
	CostKey     func(spillway.Call) string
	MaxInFlight int         // zero and negative mean no limit
	Shed        shed.Config // without a Limit, which is made of Concurrency
	Concurrency concurrency.Config
	LimitKey    func(key string) string
	ProxyOnly   bool
	Modes       Modes
	Attempts    attempts.Config

	// Internal says that the boundary is internal: the attempt number of each request is believed,
	// and clients learn the accept ratio.
	Internal bool
	// AcceptRatio says that clients learn the accept ratio whatever the boundary is.
	AcceptRatio bool

	Exempt     func(spillway.Call) bool
	RetryAfter time.Duration
	Rand       func() float64
	// Observer may also have the method ObserveEnd of an EndObserver of package ingress.
	Observer spillway.Observer
}

// Modes are the modes of the gates.
type Modes struct {
	RateLimit, Quota, InFlight, Shed spillway.Mode
}

// The gates, in the order in which a request passes them.
const (
	limitGate = iota
	quotaGate
	flightGate
	shedGate
	gates
)

// gateNames are the names of the gates in events and rejections.
var gateNames = [gates]string{"ratelimit", "quota", "inflight", "shed"}

// modeFields are the fields of the modes in the Config of package ingress.
var modeFields = [gates]string{"RateLimitMode", "QuotaMode", "InFlightMode", "ShedMode"}

func (m Modes) byGate() [gates]spillway.Mode {
	return [gates]spillway.Mode{m.RateLimit, m.Quota, m.InFlight, m.Shed}
}

func modesOf(m [gates]spillway.Mode) Modes {
	return Modes{RateLimit: m[limitGate], Quota: m[quotaGate], InFlight: m[flightGate], Shed: m[shedGate]}
}

// stack is the package name in errors: users know the Config of package ingress.
const stack = "ingress"

func (c Config) withDefaults() (Config, error) {
	c.RetryAfter = cmp.Or(c.RetryAfter, time.Second)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Shed.Rand == nil {
		c.Shed.Rand = c.Rand
	}
	for gate, mode := range c.Modes.byGate() {
		if mode > spillway.ModeOff {
			return c, invalid.Field(stack, modeFields[gate], mode, "Enforce, Observe or Off")
		}
	}
	if c.RetryAfter < time.Millisecond || c.RetryAfter > time.Hour {
		return c, invalid.Field(stack, "RetryAfter", c.RetryAfter, "1ms to 1h")
	}
	if c.MaxInFlight > math.MaxInt32 {
		return c, invalid.Field(stack, "MaxInFlight", c.MaxInFlight, "at most %d", math.MaxInt32)
	}
	return c, nil
}

// flight returns the configuration of the shedder of MaxInFlight, for which no load counts.
func (c *Config) flight() (shed.Config, concurrency.Config) {
	return shed.Config{
		MaxWait: c.Shed.MaxWait, Rand: c.Shed.Rand, Policy: gateNames[flightGate],
		Advice: "raise MaxInFlight if the server can bear more",
	}, concurrency.Config{MaxInFlight: c.MaxInFlight, Fixed: true, MaxKeys: 1}
}

func (c *Config) exempt(call *spillway.Call) bool { return c.Exempt != nil && c.Exempt(*call) }
