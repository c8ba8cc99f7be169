package main

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Customers other than the main one have these limits and demands, in calls per second.
const (
	otherLimit  = 10.
	lightDemand = 0.5
	heavyDemand = 50. // of the first of them
	heavy       = 100 // how many these are
	maxUnlisted = 1e5 // of a task; the default of 1,000 would make one customer of the others
)

// counts are what a world has seen, since the end of its warm-up.
type counts struct {
	syncs, fenced, rejected     int
	reports, levels, collected  float64 // bytes, to the board, to tasks, and to leaders
	heavyAdmitted               float64
	lightOffered, lightAdmitted float64
	leaders, members            []float64 // processor time of round trips without the board's, in microseconds
}

// measure notes the processor time of a round trip.
func (w *world) measure(leader bool, d time.Duration) {
	all := &w.counts.members
	if leader {
		all = &w.counts.leaders
	}
	*all = append(*all, float64(d)/float64(time.Microsecond))
}

// calls makes the calls of one tick.
func (w *world) calls() {
	for _, k := range w.tasks {
		n := w.poisson(w.Demand * w.Limit * tick.Seconds() * w.Load(w, k.index))
		if n == 0 || k.down || k.frozen > w.now {
			continue
		}
		w.offered[k.zone] += float64(n)
		for range n {
			if k.decide("main") {
				k.admitted[w.now/window]++
			} else if w.now >= settled {
				w.counts.rejected++
			}
		}
		k.syncEarly()
	}
	if w.Customers > 0 {
		w.others()
	}
}

// others makes the calls of all other customers.
func (w *world) others() {
	c := &w.counts
	for range w.poisson(float64(w.Customers-heavy) * lightDemand * tick.Seconds()) {
		c.lightOffered++
		if w.other(heavy + w.rand.IntN(w.Customers-heavy)) {
			c.lightAdmitted++
		}
	}
	for range w.poisson(heavy * heavyDemand * tick.Seconds()) {
		if w.other(w.rand.IntN(heavy)) {
			c.heavyAdmitted++
		}
	}
}

// other makes a call of a customer, at one of the tasks that it comes to.
func (w *world) other(customer int) bool {
	first := customer * 7919 // a prime: customers begin at different tasks
	k := w.tasks[(first+w.rand.IntN(w.Spread))%len(w.tasks)]
	defer k.syncEarly()
	return k.decide(w.names[customer])
}

// decide reports whether a call is admitted.
func (k *task) decide(customer string) bool {
	now := k.w.clock()
	ticket, err := k.gate.Admit(now, spillway.Call{Customer: customer})
	if err != nil {
		return false
	}
	ticket.Settle(now, spillway.OutcomeServed)
	return true
}

// syncEarly ends the pause of a task if demand is urgent.
func (k *task) syncEarly() {
	if k.urgent && k.isUrgent() {
		k.urgent = false
		k.w.wake(k, k.w.now)
	}
}
