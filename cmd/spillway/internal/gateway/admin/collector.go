package admin

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/internal/spacesaving"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// What becomes of requests: the fates.
const (
	fateServed = iota
	fateLate
	fateFailed
	fateDeclined
	fateLeft         // the client left after the request was sent
	fateGone         // the client left before
	fateRefused      // before it was let in
	fateWithheld     // after it: by a gate of the client, or by the queue of a batch cluster
	fateIngressWould // a gate of the server's side would have refused it
	fateEgressWould  // one of the client's side would have
	fateCount
)

// A Collector counts what the policies decide; make one with [NewCollector]. It is safe
// for concurrent use, takes no lock but to count a rejection, and allocates nothing.
type Collector struct {
	accounts  accounts.Book // of requests of HTTP
	booked    atomic.Bool   // by a proxy, so that events do not tell fates of these
	events    telemetry.Counts
	routes    *spacesaving.Table // rejections by route and reason
	clusters  clusterCounter     // rejections by cluster
	fates     [fateCount][spillway.Criticalities]atomic.Uint64
	retries   atomic.Uint64
	latency   [len(telemetry.Roles)]histogram // of requests that were served or late
	deadlines histogram                       // that requests brought with them
	slowest   atomic.Int64
	byEnd     atomic.Pointer[[]string] // keys of calls
}

// routesListed is how many pairs of a route and a reason have a metric of their own.
const routesListed = 20

var _ spillway.Observer = (*Collector)(nil)

// NewCollector returns a Collector that has counted nothing.
func NewCollector() *Collector {
	routes, _ := spacesaving.New(routesListed) // which is in range
	return &Collector{routes: routes}
}

// Accounts returns the accounts for a proxy to write to: it knows how each of its requests
// ended. From then on events tell the fates of calls by [Collector.ByEnd] only.
func (c *Collector) Accounts() *accounts.Book {
	c.booked.Store(true)
	return &c.accounts
}

// Observe implements [spillway.Observer].
func (c *Collector) Observe(e spillway.Event) {
	class := e.Call.Criticality.Index()
	kind := c.events.Add(&e)
	if role := kind.Role(); role >= 0 && e.Latency > 0 {
		c.latency[role].add(e.Latency)
	}
	if e.Rejected && e.Mode == spillway.ModeEnforce {
		c.routes.Add(e.Call.Key, uint8(e.Reason))
		c.clusters.add(routes.ClusterOf(e.Call.Key))
	}
	keys := c.byEnd.Load()
	byEnd := keys != nil && slices.Contains(*keys, e.Call.Key)
	switch {
	case e.Rejected && byEnd && (e.Mode == spillway.ModeEnforce || e.Call.Attempt > 0):
	case e.Rejected:
		c.refused(&e, class)
	case e.Policy == "retry":
		c.ended(&e, class, byEnd)
	case e.Policy == "batch" && e.Outcome != spillway.OutcomeServed && !c.booked.Load():
		c.fates[fateOf(e.Outcome)][class].Add(1) // in the queue: it was not sent
	}
}

// ByEnd says from now on which keys calls have that meet the gates of the server's side
// once for each attempt: what was refused may come again, so that the end of the call
// tells its fate, and the first attempt what gates that observe would have refused. A
// call that was refused each time was never let in if it made one attempt only.
func (c *Collector) ByEnd(keys ...string) { c.byEnd.Store(&keys) }

// refused counts a refusal. One of an attempt by a gate that enforces is known by the
// end of the call.
func (c *Collector) refused(e *spillway.Event, class int) {
	attempt := e.Policy == "throttle" || e.Policy == "inflight"
	switch {
	case e.Mode == spillway.ModeEnforce && c.booked.Load():
	case e.Mode == spillway.ModeEnforce && e.Policy == "batch":
		c.fates[fateWithheld][class].Add(1)
	case e.Mode == spillway.ModeEnforce && !attempt:
		c.fates[fateRefused][class].Add(1)
	case e.Mode != spillway.ModeEnforce && attempt:
		c.fates[fateEgressWould][class].Add(1)
	case e.Mode != spillway.ModeEnforce:
		c.fates[fateIngressWould][class].Add(1)
	}
}

// ended counts a request whose call to the upstream has ended. A latency of zero is
// none.
func (c *Collector) ended(e *spillway.Event, class int, byEnd bool) {
	fate := fateOf(e.Outcome)
	if fate == fateLeft && errors.Is(e.Err, spillway.ErrRejected) {
		fate = fateWithheld
		if byEnd && e.Call.Attempt == 0 {
			fate = fateRefused
		}
	}
	if byEnd || !c.booked.Load() {
		c.fates[fate][class].Add(1)
	}
	if n := e.Call.Attempt; n > 0 {
		c.retries.Add(uint64(n))
	}
	if fate > fateLate || e.Latency == 0 {
		return
	}
	for most := c.slowest.Load(); int64(e.Latency) > most; most = c.slowest.Load() {
		if c.slowest.CompareAndSwap(most, int64(e.Latency)) {
			break
		}
	}
	if !e.Call.Deadline.IsZero() {
		c.deadlines.add(e.Call.Deadline.Sub(e.Time))
	}
}

// totals is what a Collector has counted up to some time.
type totals struct {
	accounts  accounts.Totals
	booked    bool
	offered   uint64 // where booked
	events    telemetry.Totals
	routes    []spacesaving.Count
	unlisted  uint64 // rejections of other routes
	clusters  map[string]uint64
	fates     [fateCount][spillway.Criticalities]uint64
	retries   uint64
	latency   [len(telemetry.Roles)]counts
	deadlines counts
	slowest   time.Duration // since the last time that totals were read
}

// read returns what was counted so far. Counters go on meanwhile, so that sums may be
// off by the requests of that moment.
func (c *Collector) read() *totals {
	t := &totals{clusters: c.clusters.read(), retries: c.retries.Load(), slowest: time.Duration(c.slowest.Swap(0))}
	c.events.Read(&t.events)
	t.routes, t.unlisted = c.routes.Read()
	for fate := range c.fates {
		for class := range c.fates[fate] {
			t.fates[fate][class] = c.fates[fate][class].Load()
		}
	}
	if t.booked = c.booked.Load(); t.booked {
		t.book(c.accounts.Read())
	}
	for role := range c.latency {
		c.latency[role].read(&t.latency[role])
	}
	c.deadlines.read(&t.deadlines)
	return t
}

// fateIn are the fates of accounts.
var fateIn = [accounts.Count]int{
	accounts.Served: fateServed, accounts.Late: fateLate, accounts.Failed: fateFailed, accounts.Rejected: fateRefused,
	accounts.RejectedUpstream: fateDeclined, accounts.GoneWaiting: fateGone, accounts.GoneSent: fateLeft,
}

// book adds the accounts to the fates that events tell.
func (t *totals) book(all accounts.Totals) {
	t.accounts, t.offered = all, all.Offered
	for fate := fateServed; fate <= fateWithheld; fate++ {
		for class := range t.fates[fate] {
			t.offered += t.fates[fate][class]
		}
	}
	for account, fate := range fateIn {
		for class, n := range all.Ended[account] {
			t.fates[fate][class] += n
		}
	}
}
