package collector

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/capped"
	"github.com/seed90641741/spillway/internal/admin/histogram"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// A Collector counts what the policies decide; make one with [New]. It is safe
// for concurrent use, takes no lock but to count a rejection, and allocates nothing.
type Collector struct {
	accounts  accounts.Book
	clusters  capped.Map[string, telemetry.Counts]              // events by cluster
	would     [len(sides)][spillway.Criticalities]atomic.Uint64 // rejections by gates that observe
	retries   atomic.Uint64
	latency   [len(telemetry.Roles)]histogram.Histogram // of requests that were served or late
	deadlines [len(telemetry.Roles)]histogram.Histogram // that requests brought with them
	slowest   [len(telemetry.Roles)]atomic.Int64
	byEnd     atomic.Pointer[[]string] // keys of calls
	library   *library                 // nil: this is a proxy
}

// maxClusters is the number of clusters with counts of their own. The configuration bounds the
// names; this bounds the memory of a process whose configuration is often replaced.
const maxClusters = 50

// otherClusters is the name of the clusters beyond maxClusters.
const otherClusters = "other"

// The sides of gates, for rejections that gates would make: a request may meet one of each.
var sides = [...]string{"server", "client"}

// sideOf returns the side of the gates of a policy.
func sideOf(policy string) int {
	if policy == "throttle" || policy == "inflight" {
		return 1
	}
	return 0
}

var _ spillway.Observer = (*Collector)(nil)

// New returns an empty Collector.
func New() *Collector { return new(Collector) }

// Accounts returns the accounts, for a proxy to write to: it knows how each of its requests ended.
func (c *Collector) Accounts() *accounts.Book { return &c.accounts }

// Observe implements [spillway.Observer].
func (c *Collector) Observe(e spillway.Event) {
	kind := c.clusters.Get(c.clusterOf(&e), maxClusters, otherClusters).Add(&e)
	if role := kind.Role(); role >= 0 && e.Latency > 0 && (c.library == nil || role == telemetry.RoleClient) {
		c.latency[role].Add(e.Latency)
	}
	switch {
	case e.Rejected && e.Mode != spillway.ModeEnforce && !c.again(&e):
		c.would[sideOf(e.Policy)][e.Call.Criticality.Index()].Add(1)
	case !e.Rejected && e.Policy == "retry":
		c.ended(&e)
	}
}

// clusterOf returns the cluster of an event: in a program that uses the library, the backend of a client.
func (c *Collector) clusterOf(e *spillway.Event) string {
	if c.library != nil {
		return backendOf(e)
	}
	cluster, _, _ := strings.Cut(e.Call.Key, accounts.KeySeparator)
	return cluster
}

// ByEnd sets the keys of calls that pass through the server-side gates once for each attempt.
// What gates in observe mode would have rejected is counted at the first attempt of such a call.
func (c *Collector) ByEnd(keys ...string) { c.byEnd.Store(&keys) }

// again reports whether an event is of a later attempt of a call that meets its gates at each.
func (c *Collector) again(e *spillway.Event) bool {
	keys := c.byEnd.Load()
	return e.Call.Attempt > 0 && keys != nil && slices.Contains(*keys, e.Call.Key)
}

// ended counts the retries of a request whose call to the upstream has ended, and its answer.
func (c *Collector) ended(e *spillway.Event) {
	if n := e.Call.Attempt; n > 0 {
		c.retries.Add(uint64(n))
	}
	if c.library != nil {
		c.library.call(e)
	}
	c.answered(telemetry.RoleClient, e)
}

// answered counts the deadline and the latency of an answer. A latency of zero means that none was measured.
func (c *Collector) answered(role int, e *spillway.Event) {
	if accounts.Upstream(e.Outcome) > accounts.Late || e.Latency == 0 {
		return
	}
	for most := c.slowest[role].Load(); int64(e.Latency) > most; most = c.slowest[role].Load() {
		if c.slowest[role].CompareAndSwap(most, int64(e.Latency)) {
			break
		}
	}
	if !e.Call.Deadline.IsZero() {
		c.deadlines[role].Add(e.Call.Deadline.Sub(e.Time))
	}
}

// Totals is what a Collector has counted up to some time.
type Totals struct {
	Accounts  accounts.Totals
	Events    telemetry.Totals
	Rejected  map[string]uint64                          // requests, by cluster
	Would     [len(sides)][spillway.Criticalities]uint64 // rejections by gates that observe, of the server's side and of the client's
	Retries   uint64
	Calls     uint64 // of clients of the library that have ended; 0 in a proxy, whose requests are its calls
	Latency   [len(telemetry.Roles)]histogram.Counts
	Deadlines histogram.Counts
	Slowest   time.Duration // since the last time that totals were read
	role      int
}

// Answers returns the latency of the requests that the Accounts count.
func (t *Totals) Answers() *histogram.Counts { return &t.Latency[t.role] }

// Details are the counts of each cluster and route.
type Details struct {
	Events map[string]*telemetry.Totals // by cluster
	Places []accounts.PlaceTotal
}

// Read returns what was counted so far. Counting goes on meanwhile, so sums may be off by the
// requests of that moment.
func (c *Collector) Read() (*Totals, Details) {
	d := Details{Events: make(map[string]*telemetry.Totals)}
	t := &Totals{Rejected: make(map[string]uint64), Retries: c.retries.Load(), role: telemetry.RoleClient}
	if c.library != nil {
		c.library.read(&c.accounts, t)
	} else {
		d.Places, t.Accounts = c.accounts.Places(), c.accounts.Read()
	}
	for role := range c.slowest {
		if slowest := c.slowest[role].Swap(0); role == t.role {
			t.Slowest = time.Duration(slowest)
		}
	}
	for name, counts := range c.clusters.All() {
		events := new(telemetry.Totals)
		counts.Read(events)
		d.Events[name] = events
		t.Rejected[name] = rejections(events)
		t.Events.Add(events)
	}
	for side := range c.would {
		for class := range c.would[side] {
			t.Would[side][class] = c.would[side][class].Load()
		}
	}
	for role := range c.latency {
		c.latency[role].Read(&t.Latency[role])
	}
	c.deadlines[t.role].Read(&t.Deadlines)
	return t, d
}

// rejections returns how many requests the gates that enforce have rejected.
func rejections(events *telemetry.Totals) (n uint64) {
	for k, classes := range events[spillway.ModeEnforce] {
		if telemetry.Kind(k).Outcome() == "rejected" {
			for _, of := range classes {
				n += of
			}
		}
	}
	return n
}
