package quota

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// ClassStats counts the admitted and rejected calls of one criticality.
type ClassStats struct{ AdmittedTotal, RejectedTotal uint64 }

// CustomerStats is the state of one customer in this process. Rates are in cost per second. A call
// costs 1, unless Config.Cost is set or costs are measured.
type CustomerStats struct {
	Customer string // "" for all customers that share a bucket
	Known    bool   // the Allocator knows the customer
	// Unlisted is true in the entry for LocalConfig.UnlistedTotal, which has all customers together
	// that are not listed by name. Their calls are also in their own entries. Calls that
	// DefaultLimit rejects are only in those.
	Unlisted bool
	Limit    float64 // of all processes together; +Inf means no limit
	Rate     float64 // granted to this process now; +Inf means no limit
	Setting  string  // why Rate is less than Limit: [UnlistedTotal], [Capacity], or ""
	Wants    float64 // demand when the last lease was granted
	// AdmittedRate and RejectedRate are calls per second: the mean over the last 10 seconds, or
	// over the time since the first call.
	AdmittedRate, RejectedRate float64
	// UsedRate is the cost per second that was charged, over the same time as AdmittedRate. It is
	// never negative.
	UsedRate float64
	// Debt is the share of the bucket that is used: 0 to 1, and above 1 after a Charge. From 1/4 on
	// SHEDDABLE is rejected, from 1/2 on SHEDDABLE_PLUS, from 3/4 on CRITICAL, and from 1 on
	// everything. A customer that always asks for more stays just below its threshold.
	Debt float64
	// Classes counts the calls since the customer got its bucket, by [spillway.Criticality.Index].
	Classes [spillway.Criticalities]ClassStats
}

// Stats returns an entry for each customer that has a bucket, in no order, and one for all unlisted
// customers together if they have a limit and have sent calls. It allocates, and its time grows
// with the number of customers.
func (q *Quota) Stats(now time.Time) []CustomerStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.see(now)
	all := make([]CustomerStats, 0, len(q.customers)+1)
	for i, c := range q.customers {
		if i > 0 && c.unlisted {
			continue // the first line includes this customer
		}
		all = append(all, c.stats(q.at, q.burst))
	}
	if u := &q.unlisted; u.until > 0 && !math.IsInf(u.rate, 1) {
		all = append(all, u.stats(q.at, q.burst))
	}
	return all
}

func (c *customer) stats(at, burst time.Duration) CustomerStats {
	s := CustomerStats{
		Customer: c.name, Known: c.known, Unlisted: c.all, Limit: c.limit, Rate: c.rate, Setting: c.setting, Wants: c.wants,
		Debt: c.debt(at, burst), Classes: c.calls,
	}
	s.AdmittedRate, s.RejectedRate, s.UsedRate = c.recent.rates(at)
	return s
}

// recent counts the calls of the current window and of the window before.
type recent struct {
	begun bool
	first time.Duration // when the first call came
	since time.Duration // when the current window began
	// now counts the current window, and was the window before.
	now, was counted
}

// counted is a number of calls, and the cost that was charged.
type counted struct {
	ClassStats

	cost float64
}

// recentWindow is the length of a window.
const recentWindow = 10 * time.Second

// at returns the counts of the window that contains the time at.
func (r *recent) at(at time.Duration) *counted {
	switch age := at - r.since; {
	case !r.begun || age >= 2*recentWindow:
		*r = recent{begun: true, first: at, since: at}
	case age >= recentWindow:
		r.since += recentWindow
		r.now, r.was = counted{}, r.now
	}
	return &r.now
}

// rates returns the calls and the cost per second over the last recentWindow. The part of it that
// lies in the window before counts as if calls had been spread evenly.
func (r *recent) rates(at time.Duration) (admitted, rejected, used float64) {
	c := *r
	n := c.at(at)
	left := 1 - (at-c.since).Seconds()/recentWindow.Seconds()
	over := min(max(at-c.first, time.Second), recentWindow).Seconds()
	return (float64(n.AdmittedTotal) + float64(left*float64(c.was.AdmittedTotal))) / over,
		(float64(n.RejectedTotal) + float64(left*float64(c.was.RejectedTotal))) / over,
		max(0, n.cost+float64(left*c.was.cost)) / over
}
