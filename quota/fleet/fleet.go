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

// A Fleet is one task's part of quotas that many tasks share. It implements
// [quota.Allocator]; one Fleet may serve several quotas of a process. [Fleet.Sync]
// exchanges words with the board; [Run] calls it regularly. A Fleet without a word
// works, see the package comment. It is safe for concurrent use and must not be copied;
// make one with [New].
type Fleet struct {
	task   string
	urgent chan struct{} // has room for one signal that Sync should not wait

	mu      sync.Mutex
	cfg     *settings
	local   *quota.Local // this task's part of all limits; nil until it is needed
	entries map[string]*entry
	order   []*entry  // as in the report
	names   int       // of unlisted customers
	word    *word     // nil before the first
	fence   uint64    // the highest epoch seen
	raised  time.Time // when it was last raised

	syncing     sync.Mutex // guards what follows, which only Sync uses
	incarnation uint64
	seq         uint64
	said        time.Time
	table       *Table // nil if another task leads
	epoch       uint64 // of the table

	stats Stats // guarded by mu
}

// word is the last that came from the leader.
type word struct {
	*Levels
	heard time.Time
}

// entry is a customer in this task.
type entry struct {
	name    string
	bounds  bounds
	listed  bool
	seen    time.Time
	since   uint64                          // the first report that has it; 0 if the board does not know it
	told    time.Time                       // of that report
	offered [spillway.Criticalities]float64 // cost since the last report
	covered time.Duration                   // the time that this is over
	used    float64                         // cost since then, or since the last report that leaves it out
	wants   [spillway.Criticalities]float64 // cost per second, smoothed
	fresh   [spillway.Criticalities]float64 // the same, when the last word came
	word    *word                           // that level is of
	level   Level
	leveled bool   // whether the leader knows of demand
	setting string // what makes the rate in all tasks less than the limit
	idle    bool   // about to be forgotten
}

// bounds are what follows from the configuration alone, whatever the board says.
type bounds struct {
	most float64 // cost per second; +Inf for no limit
	fair float64 // the least that the customer can have in all tasks
	own  bool    // whether the rate is most, whatever other customers do
}

// New returns a Fleet without a word from the board, or an error that names the field
// of c that is out of range.
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

// Join returns a Fleet for another task in this process, such as a client that this
// process serves. It has the configuration that f has now and shares its memory. Its name
// is that of f and the number, which must be different for each. Join returns an error if
// the name is longer than 255 bytes.
func (f *Fleet) Join(number uint64) (*Fleet, error) {
	task := f.task + "/" + strconv.FormatUint(number, 10)
	if len(task) > maxName {
		return nil, invalid.Field("fleet", "Task", task, "at most %d bytes", maxName)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return newFleet(task, f.cfg), nil
}

// Update changes the configuration of a Fleet in use, or returns an error that names
// the field that is out of range and changes nothing. It must come to all tasks soon.
// Task has no effect.
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
		if !e.listed && e.name != "" && f.entries[e.name] == e { // a report may be forgetting it
			f.names++
		}
	}
	return nil
}

// bounds returns the bounds of a customer, and whether it is listed by name.
func (s *settings) bounds(name string) (b bounds, listed bool) {
	limit, listed := s.limit(name)
	b.most = min(limit.Rate, s.maximum)
	if !listed {
		b.most = min(b.most, orNone(s.Limits.UnlistedTotal.Rate))
		limit.Weight = effective(s.Limits.UnlistedTotal).Weight / float64(s.MaxUnlisted+1)
	}
	b.own = s.Above == nil && math.IsInf(s.maximum, 1) && (listed || s.Limits.UnlistedTotal.Rate == 0)
	b.fair = b.most // what is not bounded by the capacity
	if !math.IsInf(s.maximum, 1) {
		b.fair = min(b.most, s.maximum*limit.Weight/s.weight)
	}
	return b, listed
}

// Known implements [quota.Allocator]: it reports whether the customer is one of
// Limits.Customers.
func (f *Fleet) Known(customer string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.cfg.Limits.Customers[customer]
	return ok
}

// Lease implements [quota.Allocator]. It takes note of the demand, and grants this
// task's share for a quarter of an interval. Customers above MaxUnlisted get the share of the
// customer "", all together. It allocates nothing but an entry for a newcomer.
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
// customer of this name is one of those without a name.
const allUnlisted = "\x00unlisted"

// LeaseUnlisted implements [quota.UnlistedAllocator] with Limits.UnlistedTotal, which is shared
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

// lease takes note of the demand of an entry, and grants this task's share.
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

// demand returns what this task needs for a customer: what it reports, or what came since the last
// lease if that lasted longer than reports follow. So rare calls, whose demand has faded from the reports,
// have a share for the time between them.
func demand(e *entry, d *quota.Demand) (wants [spillway.Criticalities]float64) {
	wants = e.wants
	if seconds := d.Elapsed.Seconds(); seconds > shortMemory {
		for class, cost := range d.Offered {
			wants[class] = max(wants[class], cost/seconds)
		}
	}
	return wants
}

// urgentCost is how much must be wanted before a jump in demand is believed to be one:
// below, the noise of independent calls is above a third.
const urgentCost = 10

// Urgent returns a channel that receives a value when demand has jumped, so that the next
// [Fleet.Sync] should come early. [Run] reads it; it is for callers that call Sync themselves.
func (f *Fleet) Urgent() <-chan struct{} { return f.urgent }

// entry returns the entry of a customer, or of all others if there are too many.
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
