package fleet

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/quota"
)

// A Fleet is one task's part of quotas that many tasks share. It implements [quota.Allocator]; one
// Fleet may serve several quotas of a process. [Fleet.Sync] exchanges data with the board, and
// [Run] calls it regularly. Without a board a Fleet works, too; see the package comment. It is safe
// for concurrent use and must not be copied. Make one with [New].
type Fleet struct {
	task   string
	urgent chan struct{} // receives a value when Sync should come early; capacity 1

	mu      sync.Mutex
	cfg     *settings
	local   *quota.Local // this task's part of all limits; nil before its first use
	entries map[string]*entry
	order   []*entry  // in the order of the report
	names   int       // number of unlisted customers
	word    *word     // the last levels; nil before the first
	fence   uint64    // highest epoch seen
	raised  time.Time // when fence was last raised

	syncing sync.Mutex // held by Sync; guards the fields below
	// incarnation is random, and tells this process from an earlier one with the same task name.
	incarnation uint64
	seq         uint64
	said        time.Time
	table       *Table // nil if another task leads
	epoch       uint64 // of table

	stats Stats // guarded by mu
}

// word is the levels that were last received, and when.
type word struct {
	*Levels
	heard time.Time
}

// entry is a customer in this task.
type entry struct {
	name   string
	bounds bounds
	listed bool
	seen   time.Time
	// since is the number of the first report with it; 0 means that the board does not know it.
	since   uint64
	told    time.Time                       // time of that report
	offered [spillway.Criticalities]float64 // cost since the last report
	covered time.Duration                   // time over which offered was counted
	// used is the cost since that report, or since the last report without the customer.
	used    float64
	wants   [spillway.Criticalities]float64 // demand in cost per second, smoothed
	fresh   [spillway.Criticalities]float64 // value of wants when word was received
	word    *word                           // the levels that level is from
	level   Level
	leveled bool   // word has a level for the customer
	setting string // limit that makes the rate in all tasks less than its own
	idle    bool   // to be forgotten
}

// bounds are what follows from the configuration alone, whatever the board returns.
type bounds struct {
	most float64 // cost per second; +Inf for no limit
	fair float64 // cost per second that the customer has at least, in all tasks
	own  bool    // the rate is most, whatever other customers do
}

// New returns a Fleet that has no levels yet. An error names the field of c that is out of range.
func New(c Config) (*Fleet, error) {
	if c.Task == "" {
		c.Task = rand.Text()
	}
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return newFleet(c.Task, cfg), nil
}

func newFleet(task string, cfg *settings) *Fleet {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return &Fleet{
		task: task, cfg: cfg, entries: make(map[string]*entry), urgent: make(chan struct{}, 1),
		incarnation: binary.LittleEndian.Uint64(random[:]),
	}
}

// Join returns a Fleet for another task in this process, such as a client that this process serves.
// The new Fleet has the current configuration of f, and shares its memory. Its name is that of f
// followed by the number, which must be different for each. Join returns an error if the name is
// longer than 255 bytes.
func (f *Fleet) Join(number uint64) (*Fleet, error) {
	task := f.task + "/" + strconv.FormatUint(number, 10)
	if len(task) > maxName {
		return nil, invalid.Field("fleet", "Task", task, "at most %d bytes", maxName)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return newFleet(task, f.cfg), nil
}

// Update changes the configuration of a Fleet in use. An error names the field that is out of
// range, and nothing has changed then. All tasks should be updated at about the same time. Task has
// no effect.
func (f *Fleet) Update(c Config) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Task = f.task
	cfg, err := c.withDefaults()
	if err != nil {
		return err
	}
	f.cfg, f.local, f.names = cfg, nil, 0
	for _, e := range f.order {
		e.bounds, e.listed = cfg.bounds(e.name)
		if !e.listed && e.name != "" && f.entries[e.name] == e { // a report may just be removing it
			f.names++
		}
	}
	return nil
}

// bounds returns the bounds of a customer, and whether the customer is listed by name.
func (s *settings) bounds(name string) (b bounds, listed bool) {
	limit, listed := s.limit(name)
	b.most = min(limit.Rate, s.maximum)
	if !listed {
		b.most = min(b.most, orNone(s.Limits.UnlistedTotal.Rate))
		limit.Weight = effective(s.Limits.UnlistedTotal).Weight / float64(s.MaxUnlisted+1)
	}
	b.own = s.Above == nil && math.IsInf(s.maximum, 1) && (listed || s.Limits.UnlistedTotal.Rate == 0)
	b.fair = b.most // the capacity does not limit it
	if !math.IsInf(s.maximum, 1) {
		b.fair = min(b.most, s.maximum*limit.Weight/s.weight)
	}
	return b, listed
}

// Known implements [quota.Allocator]. It reports whether the customer is in Limits.Customers.
func (f *Fleet) Known(customer string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.cfg.Limits.Customers[customer]
	return ok
}

// Lease implements [quota.Allocator]. It records the demand, and grants this task's share for a
// quarter of an interval. All customers above MaxUnlisted together get the share of the customer
// "". It allocates only the entry of a new customer.
func (f *Fleet) Lease(now time.Time, d quota.Demand) quota.Grant {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := d.Customer
	if name == allUnlisted {
		name = ""
	}
	e := f.entry(name)
	if e.name == "" && d.Customer != "" {
		return quota.Grant{Unlisted: true, Until: now.Add(f.cfg.lease)}
	}
	return f.lease(now, e, d)
}

// allUnlisted is the name, between tasks, of the account of all unlisted customers together. A
// customer that has this name is treated as one without a name.
const allUnlisted = "\x00unlisted"

// LeaseUnlisted implements [quota.UnlistedAllocator] with Limits.UnlistedTotal. The tasks share it
// like the limit of a listed customer.
func (f *Fleet) LeaseUnlisted(now time.Time, d quota.Demand) quota.Grant {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cfg.Limits.UnlistedTotal.Rate == 0 {
		return quota.Grant{Rate: math.Inf(1), Until: now.Add(f.cfg.lease)}
	}
	d.Customer = allUnlisted
	return f.lease(now, f.entry(allUnlisted), d)
}

// lease records the demand of an entry, and grants this task's share.
func (f *Fleet) lease(now time.Time, e *entry, d quota.Demand) quota.Grant {
	e.seen = now
	e.used += d.Used
	e.covered += d.Elapsed
	reported, sum := 0., 0.
	for class, cost := range d.Offered {
		e.offered[class] += cost
		sum += e.offered[class]
		reported += e.wants[class]
	}
	rate, least := f.share(now, e, d, demand(e, &d))
	if d.Wants > rate && d.Wants > 2*reported && sum >= urgentCost {
		select {
		case f.urgent <- struct{}{}:
		default:
		}
	}
	limit, _ := f.cfg.limit(e.name)
	return quota.Grant{
		Rate: rate, Part: true, Limit: limit.Rate, Setting: e.setting,
		LeastClass: least, LeastDepth: f.cfg.LeastDepth, Until: now.Add(f.cfg.lease),
	}
}

// demand returns what this task needs for a customer, in cost per second. This is the reported
// demand. If the last lease is longer ago than reports look back, it is at least the demand since
// that lease: rare calls have faded from the reports by then, and still need a share.
func demand(e *entry, d *quota.Demand) (wants [spillway.Criticalities]float64) {
	wants = e.wants
	if seconds := d.Elapsed.Seconds(); seconds > shortMemory {
		for class, cost := range d.Offered {
			wants[class] = max(wants[class], cost/seconds)
		}
	}
	return wants
}

// urgentCost is the least cost with which a jump in demand is believed. Below it, independent calls
// vary by more than a third.
const urgentCost = 10

// Urgent returns a channel that receives a value when demand has jumped, so that the next
// [Fleet.Sync] should come early. [Run] reads it. Callers that call Sync themselves can read it
// instead.
func (f *Fleet) Urgent() <-chan struct{} { return f.urgent }

// entry returns the entry of a customer. If there are too many, it returns the entry "", for all
// others.
func (f *Fleet) entry(name string) *entry {
	if e := f.entries[name]; e != nil {
		return e
	}
	b, listed := f.cfg.bounds(name)
	if !listed && name != "" && (f.names >= f.cfg.MaxUnlisted || len(name) > maxName) {
		return f.entry("")
	}
	e := &entry{name: name, bounds: b, listed: listed}
	if !listed && name != "" {
		f.names++
	}
	f.entries[name] = e
	f.order = append(f.order, e)
	return e
}
