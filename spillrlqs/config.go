package spillrlqs

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Config configures a [Server].
type Config struct {
	// Fleet has the limits, and what else all tasks agree on. Its Interval should be about
	// the reporting_interval of the Envoys: a shorter one costs more and follows demand no
	// faster. Zero means 1 s. Task names this server; empty means a random name.
	Fleet fleet.Config

	// Board is where servers meet that serve the same limits. Nil means that this server
	// is the only one.
	Board fleet.Board

	// Domain is the only domain that is served; requests for others get INVALID_ARGUMENT.
	// Empty means that the domain is ignored.
	Domain string

	// CustomerKey is the key, in ids of buckets and in descriptors, of the customer's name.
	// What has no such key counts as the customer "". Empty means "customer".
	CustomerKey string

	// CriticalityKey is the key of the criticality, such as SHEDDABLE_PLUS. Without one, or
	// with another value, it is CRITICAL. Empty means "criticality".
	CriticalityKey string

	// TTL is how long an Envoy uses an assignment without a new one. Zero means Fleet.Hold,
	// rounded up to seconds; it must be whole seconds, from 2 s and 3 intervals to 1 h.
	TTL time.Duration

	// Idle is how long a bucket without demand is kept. Zero means 1 min; it must be
	// from 3 intervals to 1 h.
	Idle time.Duration

	// MaxStreams is how many Envoys are served at a time; others get RESOURCE_EXHAUSTED.
	// Zero means 1000; it must be 1 to 100000.
	MaxStreams int

	// MaxBuckets is how many buckets all streams together have, in 1 to 3 kB each. It is
	// for listed customers and for all others apart. Zero means 100000; it must be 1 to
	// 10000000.
	MaxBuckets int

	// MaxStreamBuckets is the same for each stream. Zero means 10000; it must be 1 to
	// 1000000.
	MaxStreamBuckets int
}

// withDefaults returns c with its zero fields filled.
func (c Config) withDefaults() Config {
	orDefault(&c.Fleet.Interval, time.Second)
	orDefault(&c.Fleet.Hold, max(2*time.Second, 10*c.Fleet.Interval))
	orDefault(&c.Fleet.MaxUnlisted, 1000)
	orDefault(&c.Fleet.LeastDepth, 3)
	orDefault(&c.Fleet.BurstSeconds, 1)
	orDefault(&c.CustomerKey, "customer")
	orDefault(&c.CriticalityKey, "criticality")
	orDefault(&c.TTL, wholeSeconds(max(c.Fleet.Hold, 2*time.Second)))
	orDefault(&c.Idle, max(time.Minute, 3*c.Fleet.Interval))
	orDefault(&c.MaxStreams, 1000)
	orDefault(&c.MaxBuckets, 100_000)
	orDefault(&c.MaxStreamBuckets, 10_000)
	return c
}

// validate returns an error that names the first bad field. It does not check Fleet.
func (c *Config) validate() error {
	least := 3 * c.Fleet.Interval
	for _, f := range []struct {
		path    string
		value   any
		ok      bool
		allowed string
	}{
		{
			"TTL", c.TTL, c.TTL >= max(2*time.Second, least) && c.TTL <= time.Hour && c.TTL%time.Second == 0,
			fmt.Sprintf("whole seconds, %v to 1h", wholeSeconds(max(2*time.Second, least))),
		},
		{"Idle", c.Idle, c.Idle >= least && c.Idle <= time.Hour, fmt.Sprintf("%v to 1h", least)},
		{"MaxStreams", c.MaxStreams, c.MaxStreams >= 1 && c.MaxStreams <= 100_000, "1 to 100000"},
		{"MaxBuckets", c.MaxBuckets, c.MaxBuckets >= 1 && c.MaxBuckets <= 10_000_000, "1 to 10000000"},
		{"MaxStreamBuckets", c.MaxStreamBuckets, c.MaxStreamBuckets >= 1 && c.MaxStreamBuckets <= 1_000_000, "1 to 1000000"},
	} {
		if !f.ok {
			return fmt.Errorf("spillrlqs: %w", &spillway.FieldError{Path: f.path, Value: f.value, Allowed: f.allowed})
		}
	}
	return nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// wholeSeconds rounds up to seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
