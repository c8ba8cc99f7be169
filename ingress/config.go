package ingress

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/requests"
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
	// Costs, if not nil, learns the cost of requests, in processor time of this process. The
	// quota charges it in place of Quota.Cost once it is known. Rates and capacities of the
	// Allocator are then in the unit of Costs: milliseconds of processor time per second, by
	// default. Servers of one process should share one Estimator.
	Costs *cost.Estimator
	// CostKey returns the route whose cost is learned, or "". It is called once for each request and
	// must be quick and safe for concurrent use. It must return no name that clients invent. If
	// CostKey is nil, the cost of each customer is learned. It is learned from the first request on if
	// the Allocator of the quota knows the customer.
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
	// LimitKey returns the name of what requests with a Call.Key wait for. Keys with the same
	// name share a limit of Concurrency, where their classes are served in order, and
	// Concurrency.MaxInFlightByKey has these names. It must be quick and safe for concurrent use.
	// Nil means that the name is the key.
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

	// Rand returns a number in [0, 1) and is safe for concurrent use. Nil means [rand.Float64].
	// It draws the levels of calls that have none, and is also used for Shed, unless Shed.Rand is
	// set.
	Rand func() float64

	// Observer, if not nil, observes each decision: one event for each request
	// and gate that decided. An [EndObserver] also learns how each request has ended.
	Observer spillway.Observer
}

// requests returns the fields of c that are for the core of a Server: all but Load, and the parts
// of Trust by which adapters judge claims.
func (c *Config) requests() requests.Config {
	return requests.Config{
		RateLimit: c.RateLimit, Quota: c.Quota, Costs: c.Costs, CostKey: c.CostKey, MaxInFlight: c.MaxInFlight,
		Shed: c.Shed, Concurrency: c.Concurrency, LimitKey: c.LimitKey, ProxyOnly: c.ProxyOnly,
		Modes:    requests.Modes{RateLimit: c.RateLimitMode, Quota: c.QuotaMode, InFlight: c.InFlightMode, Shed: c.ShedMode},
		Attempts: c.Attempts, Internal: c.Trust.Boundary == Internal, AcceptRatio: c.Trust.AcceptRatio,
		Exempt: c.Exempt, RetryAfter: c.RetryAfter, Rand: c.Rand, Observer: c.Observer,
	}
}

// measures returns the configuration of the measures of the process. Without a Reference of its own
// it has the thresholds of the shedder; if these are zero, both packages use the same defaults.
func (c *Config) measures() load.Config {
	l := c.Load
	l.Reference = cmp.Or(l.Reference, load.Thresholds(c.Shed.Thresholds))
	return l
}
