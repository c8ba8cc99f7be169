package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/pace"
)

// arrival is the input of a decision on a request.
type arrival struct {
	class    int
	rank     int
	order    order
	flow     uint64
	pass     float64 // share of the requests of the caller that may wait, from 0 to 1
	state    State
	pace     pace.Pace
	queue    *queue
	patience time.Duration // maximum wait in the queue
	by       cause         // cause of its rejection after that wait
	bears    time.Duration // maximum wait behind the limit
	behind   bool          // a waiter must run first
	left     float64       // seconds to the deadline
	late     bool          // the deadline is closer than the fastest recent response
	expired  bool          // the deadline has passed
}

// examine fills a, which is zero.
func (s *Shedder) examine(a *arrival, now time.Time, call *spillway.Call, flow uint64, state *State, c *Config) {
	s.advance(now)
	s.processors = state.processors()
	s.measure(state.Utilization, c)
	a.class, a.state = call.Criticality.Index(), *state
	a.pace = s.ask(now, call.Key, c)
	a.queue = s.queue(a.pace.Scope)
	s.setRank(a, flow)
	a.order = orderOf(a.rank, call.Progress, call.Level)
	a.time(now, call, c.MaxWait)
	a.queue.overload(&a.pace, a.patience)
	if a.pace.Free && (a.queue.keeps(a.rank, s.at, c.MaxWait, a.pace.Left) || a.queue.yields(a.order.group(), &a.pace) || delays(&a.pace, a.bears)) {
		a.pace.Free = false
	}
	a.behind = s.waiting.Load() > 0 && (a.queue.n > 0 && !a.queue.yields(a.queue.highest(), &a.pace) || s.best(now, c) != nil)
	if !s.runsAtOnce(a) {
		s.disturb()
	}
	a.queue.seeLimit(s.at, a)
	a.queue.seeLeaving(s.at, &a.pace)
	s.seeProcessors(a)
	s.bound(a, call, c)
	a.queue.parked, a.queue.delay = a.pace.Parked, a.pace.Wait
	if a.pace.Throughput > 0 {
		a.queue.served = a.pace.Throughput * c.MaxWait.Seconds()
	}
}

// ask returns the state of the limit of a key.
func (s *Shedder) ask(now time.Time, key string, c *Config) (p pace.Pace) {
	if c.Limit == nil {
		return pace.Pace{Free: true, Left: math.Inf(1)}
	}
	p = c.Limit.Ask(now, key)
	if s.observes {
		s.hold(&p, key, c)
	}
	return p
}

// time finds out for how long a request may wait. With a deadline, at most half of that time may be
// spent behind the limit.
func (a *arrival) time(now time.Time, call *spillway.Call, most time.Duration) {
	calls := 1.0
	if call.Progress == 0 {
		calls = a.queue.cascade.calls()
	}
	a.patience, a.by = patience(now, call, &a.pace, most, calls)
	a.bears = math.MaxInt64
	if call.Deadline.IsZero() {
		return
	}
	a.bears = a.patience / 2
	a.left = call.Deadline.Sub(now).Seconds()
	a.late = a.left <= a.pace.Fastest
	a.expired = !now.Before(call.Deadline)
}

// delayed reports whether a request probably has to wait in the handler: its limit is saturated,
// and recent requests waited behind it for more than 5 ms plus a quarter of their latency.
func (a *arrival) delayed() bool {
	return a.pace.Saturated && a.pace.Wait.Seconds() > brief.Seconds()+float64(a.pace.Latency/4)
}

// measure sets the levels for a utilization. It does nothing if the utilization has not changed, as
// for most requests.
func (s *Shedder) measure(utilization float64, c *Config) {
	if utilization != s.measured || c != s.by {
		s.levels.set(utilization, &c.Thresholds)
		s.measured, s.by = utilization, c
	}
}

// setRank finds out which of the two ranks of its class a request has. It is the lower one while no
// request of the class is rejected, or if the caller is unknown.
func (s *Shedder) setRank(a *arrival, flow uint64) {
	within, pass := a.queue.callers[a.class].judge(flow, s.at)
	a.rank, a.flow, a.pass = 2*a.class, flow, pass
	if within {
		a.rank++
	}
}

// among reports whether a request is in the share of its rank that is rejected: the lowest levels.
// For requests without a level, random decides, a number in [0, 1). Calls of a task with progress
// are rejected only if the whole rank is.
func (a *arrival) among(share float64, random func() float64) bool {
	switch level := a.order.level(); {
	case share >= 1:
		return true
	case share <= 0 || a.order.group()%steps > 0:
		return false
	case level == 0:
		return random() < share
	default:
		return (float64(level)-0.5)/spillway.Levels < share
	}
}
