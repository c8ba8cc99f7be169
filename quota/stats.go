package quota

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// ClassStats counts the admitted and rejected calls of one criticality.
type ClassStats struct{ AdmittedTotal, RejectedTotal uint64 }

// CustomerStats says how one customer stands in this process. Rates are in cost per second; a call
// costs 1 unless Config.Cost or a measured cost says otherwise.
type CustomerStats struct {
	Customer string // "" for all those that share a bucket
	Known    bool   // to the Allocator
	// Unlisted is true in the line of LocalConfig.UnlistedTotal: all customers together that are not
	// listed by name. Their calls are in their own lines, too; those that DefaultLimit rejects only there.
	Unlisted bool
	Limit    float64 // of all processes together; +Inf for no limit
	Rate     float64 // granted to this process now; +Inf for no limit
	Setting  string  // what makes Rate less than Limit: [UnlistedTotal], [Capacity], or "" for neither
	Wants    float64 // asked for when the last lease was granted
	// AdmittedRate and RejectedRate are calls per second: the mean of the last 10 seconds, or of
	// the time since the first call.
	AdmittedRate, RejectedRate float64
	// UsedRate is the cost per second that was charged, over the same time. It is not below zero.
	UsedRate float64
	// Debt is the share of the bucket that is used, above 1 after a Charge. It has no unit.
	// From 1/4 on SHEDDABLE is rejected, from 1/2 on SHEDDABLE_PLUS, from 3/4 on CRITICAL, from 1 on
	// everything: a customer that always asks for more stays just below.
	Debt float64
	// Classes are the calls since the customer has its place; index it with
	// [spillway.Criticality.Index].
	Classes [spillway.Criticalities]ClassStats
}

// Stats returns a line for each customer that has a bucket, in no order that matters, and one for
// all unlisted customers together if they have a limit and have sent calls. It allocates, and
// takes time for each customer.
func (q *Quota) Stats(now time.Time) []CustomerStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.see(now)
	all := make([]CustomerStats, 0, len(q.customers)+1)
	for i, c := range q.customers {
		if i > 0 && c.unlisted {
			continue // it is part of the first line
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

// recent counts the calls of the current window and of the one before.
type recent struct {
	begun    bool
	first    time.Duration // the first call
	since    time.Duration // the begin of the current window
	now, was counted
}

// counted are calls and the cost that was charged.
type counted struct {
	ClassStats

	cost float64
}

// recentWindow is how far back a recent looks.
const recentWindow = 10 * time.Second

// at returns the counts of the window that is current at a time.
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

// rates returns the calls per second up to a time. Of the window before, it counts what is left of the
// last recentWindow, as if its calls had been even.
func (r *recent) rates(at time.Duration) (admitted, rejected, used float64) {
	c := *r
	n := c.at(at)
	left := 1 - (at-c.since).Seconds()/recentWindow.Seconds()
	over := min(max(at-c.first, time.Second), recentWindow).Seconds()
	return (float64(n.AdmittedTotal) + float64(left*float64(c.was.AdmittedTotal))) / over,
		(float64(n.RejectedTotal) + float64(left*float64(c.was.RejectedTotal))) / over,
		max(0, n.cost+float64(left*c.was.cost)) / over
}
