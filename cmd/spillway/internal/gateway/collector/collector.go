package collector

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/histogram"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// The fates of requests, which are the rows of [Totals].Fates.
const (
	FateServed = iota
	FateLate
	FateFailed
	FateRejectedUpstream
	FateGoneSent     // the client left after the request was sent
	FateGoneWaiting  // the client left before
	FateRejected     // before it was let in
	FateWithheld     // after it: by a gate of the client, or by the queue of a batch cluster
	FateIngressWould // a gate of the server's side would have rejected it
	FateEgressWould  // one of the client's side would have
	fateCount
)

// A Collector counts what the policies decide; make one with [New]. It is safe
// for concurrent use, takes no lock but to count a rejection, and allocates nothing.
type Collector struct {
	accounts  accounts.Book
	booked    atomic.Bool    // by a proxy, so that events do not tell fates
	clusters  clusterCounter // events by cluster
	fates     [fateCount][spillway.Criticalities]atomic.Uint64
	retries   atomic.Uint64
	latency   [len(telemetry.Roles)]histogram.Histogram // of requests that were served or late
	deadlines histogram.Histogram                       // that requests brought with them
	slowest   atomic.Int64
	byEnd     atomic.Pointer[[]string] // keys of calls
}

var _ spillway.Observer = (*Collector)(nil)

// New returns an empty Collector.
func New() *Collector { return new(Collector) }

// Accounts returns the accounts for a proxy to write to: it knows how each of its requests
// ended. From then on events count no fates, except what gates that observe would reject.
func (c *Collector) Accounts() *accounts.Book {
	c.booked.Store(true)
	return &c.accounts
}

// Observe implements [spillway.Observer].
func (c *Collector) Observe(e spillway.Event) {
	class := e.Call.Criticality.Index()
	kind := c.clusters.add(routes.ClusterOf(e.Call.Key), &e)
	if role := kind.Role(); role >= 0 && e.Latency > 0 {
		c.latency[role].Add(e.Latency)
	}
	keys := c.byEnd.Load()
	byEnd := keys != nil && slices.Contains(*keys, e.Call.Key)
	switch {
	case e.Rejected && byEnd && (e.Mode == spillway.ModeEnforce || e.Call.Attempt > 0):
	case e.Rejected:
		c.reject(&e, class)
	case e.Policy == "retry":
		c.ended(&e, class, byEnd)
	case e.Policy == "batch" && e.Outcome != spillway.OutcomeServed && !c.booked.Load():
		c.fates[fateOf(e.Outcome)][class].Add(1) // in the queue: it was not sent
	}
}

// ByEnd sets the keys of calls that pass through the server-side gates once for each attempt.
// A rejected attempt of such a call may be retried, so the end of the call decides its fate,
// and the first attempt what gates in observe mode would have rejected. A call that was
// rejected each time counts as never admitted if it made one attempt only.
func (c *Collector) ByEnd(keys ...string) { c.byEnd.Store(&keys) }

// reject counts a rejection. The rejection of an attempt by a gate that enforces is counted
// at the end of the call.
func (c *Collector) reject(e *spillway.Event, class int) {
	attempt := e.Policy == "throttle" || e.Policy == "inflight"
	switch {
	case e.Mode == spillway.ModeEnforce && c.booked.Load():
	case e.Mode == spillway.ModeEnforce && e.Policy == "batch":
		c.fates[FateWithheld][class].Add(1)
	case e.Mode == spillway.ModeEnforce && !attempt:
		c.fates[FateRejected][class].Add(1)
	case e.Mode != spillway.ModeEnforce && attempt:
		c.fates[FateEgressWould][class].Add(1)
	case e.Mode != spillway.ModeEnforce:
		c.fates[FateIngressWould][class].Add(1)
	}
}

// ended counts a request whose call to the upstream has ended. A latency of zero means that
// none was measured.
func (c *Collector) ended(e *spillway.Event, class int, byEnd bool) {
	fate := fateOf(e.Outcome)
	if fate == FateGoneSent && errors.Is(e.Err, spillway.ErrRejected) {
		fate = FateWithheld
		if byEnd && e.Call.Attempt == 0 {
			fate = FateRejected
		}
	}
	if !c.booked.Load() {
		c.fates[fate][class].Add(1)
	}
	if n := e.Call.Attempt; n > 0 {
		c.retries.Add(uint64(n))
	}
	if fate > FateLate || e.Latency == 0 {
		return
	}
	for most := c.slowest.Load(); int64(e.Latency) > most; most = c.slowest.Load() {
		if c.slowest.CompareAndSwap(most, int64(e.Latency)) {
			break
		}
	}
	if !e.Call.Deadline.IsZero() {
		c.deadlines.Add(e.Call.Deadline.Sub(e.Time))
	}
}

// Totals is what a Collector has counted up to some time.
type Totals struct {
	Accounts  accounts.Totals
	Booked    bool
	Offered   uint64 // where booked
	Events    telemetry.Totals
	Rejected  map[string]uint64 // requests, by cluster
	Fates     [fateCount][spillway.Criticalities]uint64
	Retries   uint64
	Latency   [len(telemetry.Roles)]histogram.Counts
	Deadlines histogram.Counts
	Slowest   time.Duration // since the last time that totals were read
}

// Read returns what was counted so far. Counting goes on meanwhile, so sums may be off by the
// requests of that moment.
func (c *Collector) Read() *Totals {
	t := &Totals{Rejected: make(map[string]uint64), Retries: c.retries.Load(), Slowest: time.Duration(c.slowest.Swap(0))}
	c.clusters.each(func(name string, x *cluster) {
		t.Rejected[name] = x.rejected.Load()
		var events telemetry.Totals
		x.events.Read(&events)
		t.Events.Add(&events)
	})
	for fate := range c.fates {
		for class := range c.fates[fate] {
			t.Fates[fate][class] = c.fates[fate][class].Load()
		}
	}
	if t.Booked = c.booked.Load(); t.Booked {
		t.book(c.accounts.Read())
	}
	for role := range c.latency {
		c.latency[role].Read(&t.Latency[role])
	}
	c.deadlines.Read(&t.Deadlines)
	return t
}

// Details are the counts that are kept for metrics only: there is one for each cluster and route.
type Details struct {
	Events map[string]*telemetry.Totals // by cluster
	Places []accounts.PlaceTotal
}

// Details returns what was counted so far, as Read does.
func (c *Collector) Details() (d Details) {
	d.Events = make(map[string]*telemetry.Totals)
	c.clusters.each(func(name string, x *cluster) {
		d.Events[name] = new(telemetry.Totals)
		x.events.Read(d.Events[name])
	})
	d.Places = c.accounts.Places()
	return d
}

// fateIn are the fates of accounts.
var fateIn = [accounts.Count]int{
	accounts.Served: FateServed, accounts.Late: FateLate, accounts.Failed: FateFailed, accounts.Rejected: FateRejected,
	accounts.RejectedUpstream: FateRejectedUpstream, accounts.GoneWaiting: FateGoneWaiting, accounts.GoneSent: FateGoneSent,
}

// book adds the accounts to the fates that were counted from events.
func (t *Totals) book(all accounts.Totals) {
	t.Accounts, t.Offered = all, all.Offered
	for fate := FateServed; fate <= FateWithheld; fate++ {
		for class := range t.Fates[fate] {
			t.Offered += t.Fates[fate][class]
		}
	}
	for account, fate := range fateIn {
		for class, n := range all.Ended[account] {
			t.Fates[fate][class] += n
		}
	}
}

// fateOf returns the fate of a request whose last attempt ended with an outcome.
func fateOf(o spillway.Outcome) int { return fateIn[accounts.Upstream(o)] }
