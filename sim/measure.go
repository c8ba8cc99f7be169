package sim

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed90641741/spillway"
)

// A histogram counts lengths of time, to a 64th of their size.
type histogram struct {
	counts [40 * fine]uint32
	n      uint64
}

const fine = 64 // buckets for each power of two

func (h *histogram) add(ns int64) {
	h.counts[min(bucketOf(ns), len(h.counts)-1)]++
	h.n++
}

func bucketOf(ns int64) int {
	v := uint64(max(ns, 0)) / 1000 // nothing here is as exact as a microsecond
	if v < fine {
		return int(v)
	}
	e := bits.Len64(v) - bits.Len(fine)
	return (e+1)*fine + int(v>>e) - fine
}

// bound returns the middle of a bucket, in nanoseconds.
func bound(bucket int) int64 {
	if bucket < fine {
		return int64(bucket) * 1000
	}
	e := bucket/fine - 1
	return (int64(bucket%fine+fine)<<e + int64(1)<<e/2) * 1000
}

// quantile returns the length that a share q of all do not exceed, in nanoseconds,
// and -1 if absent.
func (h *histogram) quantile(q float64) int64 {
	if h.n == 0 {
		return -1
	}
	rank := max(uint64(math.Ceil(float64(q*float64(h.n)))), 1)
	for i, n := range h.counts {
		if uint64(n) >= rank {
			return bound(i)
		}
		rank -= uint64(n)
	}
	return bound(len(h.counts) - 1)
}

// millis is quantile in milliseconds, nil if absent.
func (h *histogram) millis(q float64) *float64 {
	if h.n == 0 {
		return nil
	}
	return new(rounded(float64(h.quantile(q)) / 1e6))
}

// Counts says what happened to calls. Offered is the sum of the fields from here down to
// Unfinished.
type Counts struct {
	Offered           int `json:"offered"`
	Good              int `json:"good"` // served, and in time to be of use
	Late              int `json:"late"` // served, but later
	RejectedThrottle  int `json:"rejected_throttle"`
	RejectedInFlight  int `json:"rejected_inflight"`
	RejectedByBackend int `json:"rejected_by_backend"`
	TimedOut          int `json:"timed_out"`
	Failed            int `json:"failed"`
	Unfinished        int `json:"unfinished"` // under way at the end of the simulation
	Attempts          int `json:"attempts"`   // sent
	Sent              int `json:"sent"`       // calls of which at least one attempt was sent
}

func (c *Counts) of(o outcome) *int {
	return [...]*int{
		good: &c.Good, late: &c.Late, rejectedThrottle: &c.RejectedThrottle, rejectedInflight: &c.RejectedInFlight,
		rejectedByBackend: &c.RejectedByBackend, timedOut: &c.TimedOut, failed: &c.Failed,
	}[o]
}

type windowScore struct {
	Counts

	classes [spillway.Criticalities]Counts
	latency histogram // of good calls
}

// count calls f with each Counts that a call is part of, at a time for those of slots.
func (g *group) count(c *call, at int64, f func(*Counts)) {
	f(&g.series[g.slotOf(at)])
	class := c.call.Criticality.Index()
	for w := range g.windowsAt(c.intended) {
		f(&g.sums[w].Counts)
		f(&g.sums[w].classes[class])
	}
}

// offer counts a call that begins.
func (g *group) offer(c *call) {
	g.count(c, c.intended, func(n *Counts) { n.Offered++; n.Unfinished++ })
}

// sent counts an attempt.
func (g *group) sent(c *call) {
	first := 0
	if c.attempts == 1 {
		first = 1
	}
	g.count(c, g.now, func(n *Counts) { n.Attempts++; n.Sent += first })
}

// leastPause is after a call that took no time, which nothing else may follow but the
// next one: time would stand still.
const leastPause = int64(time.Millisecond)

// ended counts a call that ends.
func (g *group) ended(c *call, o outcome) {
	took := g.now - c.intended
	if o == good {
		g.answer.add(took)
		if useful := int64(g.config.Useful); useful > 0 && took > useful {
			o = late
		}
	}
	g.count(c, c.intended, func(n *Counts) { *n.of(o)++; n.Unfinished-- })
	if o == good {
		for w := range g.windowsAt(c.intended) {
			g.sums[w].latency.add(took)
		}
		g.edge.callers[c.client].good++
	}
	if c.again {
		pause := g.config.Think.draw(g.choice)
		if pause == 0 && took == 0 {
			pause = leastPause
		}
		g.push(pause, think, ref{uint32(c.client), g.index})
	}
}

// sampled ends a slot.
func (g *group) sampled() {
	h := &g.answer
	g.p50, g.p99 = append(g.p50, h.millis(0.5)), append(g.p99, h.millis(0.99))
	*h = histogram{}
}

// Load says what came to a service, and what it did.
type Load struct {
	Arrived  int   `json:"arrived"`
	Served   int   `json:"served"`
	Rejected int   `json:"rejected"` // overloaded, or over quota
	NoRetry  int   `json:"no_retry"` // of these, with "don't retry"
	Failed   int   `json:"failed"`   // a call to another service failed
	Lost     int   `json:"lost"`     // the task died over them
	BusyNS   int64 `json:"busy_ns"`  // processor time
	Present  int   `json:"present"`  // the most requests at one task at once
	Serving  int   `json:"serving"`  // the most tasks that served at once; zero without an Autoscaler
}

// count calls f with each Load that now is part of.
func (v *service) count(f func(*Load)) {
	f(&v.series[v.slotOf(v.now)])
	for w := range v.windowsAt(v.now) {
		f(&v.sums[w])
	}
}

// countWork counts the time of so many processors, when it passed.
func (v *service) countWork(from, to, processors int64) {
	for w := range v.sums {
		window := &v.Sim.config.Windows[w]
		v.sums[w].BusyNS += processors * max(min(to, int64(window.To))-max(from, int64(window.From)), 0)
	}
	step := int64(v.Sim.config.Step)
	for from < to {
		slot := v.slotOf(from)
		end := min(int64(slot+1)*step, to)
		v.series[slot].BusyNS += processors * (end - from)
		from = end
	}
}

func (v *service) countReply(a reply) {
	v.count(func(l *Load) {
		switch a {
		case served:
			l.Served++
		case broken:
			l.Lost++
		case hopeless, overQuota:
			l.Rejected++
			l.NoRetry++
		case failing:
			l.Failed++
		default:
			l.Rejected++
		}
	})
}
