package fleet

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/quota"
)

// Config configures a [Fleet] or a [Table].
type Config struct {
	// Limits are what customers may use in all tasks together. They must be the same in all tasks;
	// Stats.ConfigConflict reports a difference. Names must have at most 255 bytes. Interval and
	// Shares have no effect.
	Limits quota.LocalConfig

	// Task is the name of this task. Each task must have another one, of at most 255 bytes. Empty
	// means a random name. A [Table] ignores it.
	Task string

	// Tasks is the expected number of tasks. A task that never got levels from the board grants
	// limit/Tasks. Zero means 10; it must be 1 to 1000000.
	Tasks int

	// Interval is the time between two reports of a task. A shorter one follows demand sooner, and
	// costs the board more. Zero means 200 ms; it must be 50 ms to 10 s.
	Interval time.Duration

	// BurstSeconds is the depth of a customer's bucket over all tasks, in seconds of its rate. It
	// should equal quota.Config.BurstSeconds. Zero means 1; it must be 0.01 to 3600.
	BurstSeconds float64

	// LeastDepth is the least depth of a customer's bucket in each task, as a cost. With less,
	// single calls decide if a share is below one call per second. Zero means 3; negative means no
	// minimum. It must be at most 1e6.
	LeastDepth float64

	// Hold is how long a task keeps its last share without new levels. Zero means 2 s, or 10
	// intervals if that is longer; it must be 5 intervals to 10 min.
	Hold time.Duration

	// Grace is the time without new levels after which a task grants limit/tasks, and the others no
	// longer reserve anything for it. With a higher value, fewer calls above the limit are admitted
	// while tasks are cut off from the board; with a lower one, the others get the share of a
	// crashed task sooner. Zero means 5·Hold; it must be above Hold and at most 1 h.
	Grace time.Duration

	// Above is this region's part of a quota over several regions: a Fleet with the same limits,
	// whose tasks are regions and whose Task is the name of this region. The tasks of this region
	// share what Above grants to it, and [RunRegion] syncs it. Tasks then counts the tasks of all
	// regions. All customers with demand are in reports and levels, as with Limits.Capacity. Nil
	// means that there is only one region.
	Above *Fleet

	// MaxUnlisted is the maximum number of customers outside of Limits.Customers that a task
	// reports by name. All others are one customer, with the name "". Each takes about 0.8 kB of
	// memory; with Limits.Capacity or Limits.UnlistedTotal, it takes 2 kB, and is in each report. A
	// client that invents names has Limits.DefaultLimit for each of them. Zero means 1000, negative
	// means none; it must be at most 100000, and at most 20000 with Capacity or UnlistedTotal.
	MaxUnlisted int
}

const (
	maxUnlisted = 100_000
	// maxUnlistedShared is the maximum if each customer with demand is in each report. With more, a
	// leader might need more than two intervals, and then it publishes nothing.
	maxUnlistedShared = 20_000
)

// settings is a Config with defaults, and values that follow from it.
type settings struct {
	Config
	hash    uint64        // of the limits
	settle  float64       // S of the package comment, in seconds
	window  float64       // B of the package comment
	lease   time.Duration // length of a Grant's lease
	forget  time.Duration // time without calls after which a customer is not reported
	maximum float64       // cost per second that Limits.Capacity allows; +Inf: no limit
	weight  float64       // sum over all customers, listed or not
}

// withDefaults returns c with defaults for its zero fields, or an error that names the first bad
// field.
func (c Config) withDefaults() (*settings, error) {
	orInt(&c.Tasks, 10)
	orInt(&c.MaxUnlisted, 1000)
	orInt(&c.Interval, 200*time.Millisecond)
	orInt(&c.Hold, max(2*time.Second, 10*c.Interval))
	orInt(&c.Grace, 5*c.Hold)
	if c.BurstSeconds == 0 {
		c.BurstSeconds = 1
	}
	if c.LeastDepth == 0 {
		c.LeastDepth = 3
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.LeastDepth, c.MaxUnlisted = max(c.LeastDepth, 0), max(c.MaxUnlisted, 0)
	c.Limits.Customers = maps.Clone(c.Limits.Customers)
	weight := effective(c.Limits.UnlistedTotal).Weight
	for _, l := range c.Limits.Customers {
		weight += effective(l).Weight
	}
	settle := max(1, 5*c.Interval.Seconds())
	return &settings{
		Config: c, hash: c.hash(), settle: settle, window: max(c.BurstSeconds, settle),
		lease: c.Interval / 4, forget: max(5*time.Second, 3*c.Interval),
		maximum: orNone(c.Limits.Capacity), weight: weight,
	}, nil
}

// orInt sets a field to value if it is zero.
func orInt[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func (c *Config) validate() error {
	_, err := quota.NewLocal(quota.LocalConfig{
		Capacity: c.Limits.Capacity, Customers: c.Limits.Customers,
		DefaultLimit: c.Limits.DefaultLimit, UnlistedTotal: c.Limits.UnlistedTotal,
	})
	bad := func(path string, value any, format string, args ...any) error {
		return invalid.Field("fleet", path, value, format, args...)
	}
	switch {
	case err != nil:
		return invalid.In("fleet", "Limits", err)
	case len(c.Task) > maxName:
		return bad("Task", c.Task, "at most %d bytes", maxName)
	case c.Tasks < 1 || c.Tasks > maxTasks:
		return bad("Tasks", c.Tasks, "1 to %d", maxTasks)
	case c.Interval < 50*time.Millisecond || c.Interval > 10*time.Second:
		return bad("Interval", c.Interval, "50ms to 10s")
	case !(c.BurstSeconds >= 0.01 && c.BurstSeconds <= 3600):
		return bad("BurstSeconds", c.BurstSeconds, "0.01 to 3600")
	case !(c.LeastDepth <= 1e6):
		return bad("LeastDepth", c.LeastDepth, "at most 1e6, or negative for none")
	case c.Hold < 5*c.Interval || c.Hold > 10*time.Minute:
		return bad("Hold", c.Hold, "5 intervals (%v) to 10m", 5*c.Interval)
	case c.Grace <= c.Hold || c.Grace > time.Hour:
		return bad("Grace", c.Grace, "above Hold (%v) and at most 1h", c.Hold)
	case c.MaxUnlisted > maxUnlisted:
		return bad("MaxUnlisted", c.MaxUnlisted, "at most %d, or negative for none", maxUnlisted)
	case c.MaxUnlisted > maxUnlistedShared && (c.Limits.Capacity > 0 || c.Limits.UnlistedTotal.Rate > 0):
		return bad("MaxUnlisted", c.MaxUnlisted, "at most %d with Capacity or UnlistedTotal, or negative for none", maxUnlistedShared)
	}
	for name := range c.Limits.Customers {
		if name == "" || len(name) > maxName {
			return bad("Limits.Customers", name, "names of 1 to %d bytes", maxName)
		}
	}
	return nil
}

// keep returns how long a board keeps data that does not change.
func (s *settings) keep() time.Duration { return max(30*time.Second, 2*s.Grace) }

// limit returns the limit of a customer, and whether the customer is listed by name.
func (s *settings) limit(name string) (l quota.Limit, listed bool) {
	if name == allUnlisted {
		return effective(s.Limits.UnlistedTotal), true
	}
	if l, listed = s.Limits.Customers[name]; !listed {
		l, l.Weight = s.Limits.DefaultLimit, 1
	}
	return effective(l), listed
}

// effective returns l with defaults for its zero fields.
func effective(l quota.Limit) quota.Limit {
	l.Rate = orNone(l.Rate)
	if l.Weight == 0 {
		l.Weight = 1
	}
	return l
}

// orNone returns rate, or +Inf, which is no limit, for zero.
func orNone(rate float64) float64 {
	if rate == 0 {
		return math.Inf(1)
	}
	return rate
}

// hash returns a hash of the fields that must be the same in all tasks.
func (c *Config) hash() uint64 {
	h := fnv.New64a()
	var b [8]byte
	number := func(all ...float64) {
		for _, x := range all {
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
			_, _ = h.Write(b[:])
		}
	}
	number(c.Limits.Capacity, c.BurstSeconds, c.Interval.Seconds(), c.Hold.Seconds(), c.Grace.Seconds())
	number(c.Limits.DefaultLimit.Rate, c.Limits.UnlistedTotal.Rate, c.Limits.UnlistedTotal.Weight)
	for _, name := range slices.Sorted(maps.Keys(c.Limits.Customers)) {
		l := c.Limits.Customers[name]
		_, _ = io.WriteString(h, name)
		number(float64(len(name)), l.Rate, l.Weight)
	}
	return h.Sum64()
}
