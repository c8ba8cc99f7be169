package throttle

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A call that timed out counts as one that the backend did not accept: it may be too busy to
// answer. It does not count where something else explains the wait:
//
//  1. It waited for less than the usual latency of its route.
//  2. Its wait is more than farLonger times the usual latency of its route, and calls of
//     the route that were sent after it were served meanwhile.
//  3. It waited longWait or more, and meanwhile the backend served calls of any route, or
//     the in-flight limit was reached.
//
// These rules do not excuse an overloaded backend. It answers all calls later, so its usual latency
// grows with its queue, and no timeout is farLonger times as long. A backend that answers nothing
// has served nothing meanwhile. The third rule is for calls that are kept open by design, such as
// long polls. The in-flight limit is enough for these: with calls of 10 s, a tenth of it is sent
// per second.
const (
	farLonger = 10
	longWait  = 10 * time.Second
)

// explains reports whether something other than a busy backend explains that a call timed out. x is
// the place of its route, or nil. From the first timeout on, latencies are measured.
func (t *Routes) explains(x *place, e *ended) bool {
	t.activity.timed.Store(int64(e.at))
	return t.activity.explains(e.sent, e.took) || x != nil && x.latency.explains(e.sent, e.took)
}

// measure adds the latency of a served call to the usual latency of its route. It stops a Window
// after the last timeout.
func (t *Routes) measure(e *ended, x *place) {
	timed := t.activity.timed.Load()
	switch {
	case timed == 0:
	case e.at-time.Duration(timed) > t.config.Load().Window:
		t.activity.timed.CompareAndSwap(timed, 0)
	default:
		x.latency.add(e.sent, e.took)
	}
}

// Timed reports whether Settle needs the exact time at which a call with this outcome has ended.
// For other outcomes Settle uses the time at which the call was sent, so any time may be passed to
// it.
func (t *Routes) Timed(o spillway.Outcome) bool {
	return o == spillway.OutcomeTimedOut || o.Accepted() && t.activity.timing()
}

// Limited notes that the in-flight limit of the caller was reached at the time now. Calls
// that time out after a long wait meanwhile say nothing about the backend.
func (t *Routes) Limited(now time.Time) {
	later(&t.activity.limited, t.clock.since(now), time.Second)
}

// weight is the number of calls over which the usual latency is smoothed: one call moves it by 1/16
// of the difference, and 16 slower calls by two thirds.
const weight = 16

// latency is the usual latency of the served calls of a route.
type latency struct {
	usual  atomic.Int64 // smoothed latency in nanoseconds; 0: unknown
	served atomic.Int64 // when the last served call was sent
}

// add adds a served call. Of two that are added at the same time, one may be lost.
func (l *latency) add(sent, took time.Duration) {
	usual := l.usual.Load()
	if usual == 0 {
		usual = int64(took)
	}
	l.usual.Store(max(usual+(int64(took)-usual)/weight, 1))
	later(&l.served, sent, 0)
}

// explains reports whether rule 1 or 2 holds for a call.
func (l *latency) explains(sent, waited time.Duration) bool {
	usual := l.usual.Load()
	switch {
	case usual == 0:
		return false
	case int64(waited) < usual:
		return true
	default:
		return int64(waited) > farLonger*usual && l.served.Load() > int64(sent)
	}
}

// activity has times of any route, as durations on the clock; 0 means never. served is when the
// last served call was sent, and limited when the in-flight limit was last reached, both to the
// second. timed is when a call last timed out.
type activity struct{ served, limited, timed atomic.Int64 }

// explains reports whether rule 3 holds for a call.
func (a *activity) explains(sent, waited time.Duration) bool {
	return waited >= longWait && (a.served.Load() > int64(sent) || a.limited.Load() > int64(sent))
}

// timing reports whether latencies are measured.
func (a *activity) timing() bool { return a.timed.Load() > 0 }

// later sets t to the time at if that is later by more than step. With a step, few calls write the
// value that all calls read.
func later(t *atomic.Int64, at, step time.Duration) {
	if was := t.Load(); was == 0 || int64(at) > was+int64(step) {
		t.Store(int64(at))
	}
}
