package throttle

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A call that timed out counts as one that the backend did not accept: it may be too busy
// to answer. It counts for nothing where something else explains the wait:
//
//  1. It waited for less than the usual latency of its route.
//  2. Its wait is more than farLonger times the usual latency of its route, and calls of
//     the route that were sent after it were served meanwhile.
//  3. It waited longWait or more, and meanwhile the backend served calls of any route, or
//     the in-flight limit was reached.
//
// A backend with too many calls answers all of them later. Its usual latency grows with
// its queue, so that no timeout is far longer than that. One that answers nothing has
// nothing that it served meanwhile. The third rule is for calls that are kept open by design, such
// as long polls: of an in-flight limit that is reached by calls of 10 s no more than a tenth is
// sent per second.
const (
	farLonger = 10
	longWait  = 10 * time.Second
)

// explains reports whether something else than a busy backend explains that a call of the
// place x, which may be nil, timed out. From the first timeout on latencies are measured.
func (t *Routes) explains(x *place, e *ended) bool {
	t.activity.timed.Store(int64(e.at))
	return t.activity.explains(e.sent, e.took) || x != nil && x.latency.explains(e.sent, e.took)
}

// measure takes in the latency of a call that was served, until a Window after the last timeout.
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

// Timed reports whether Settle needs the exact time at which a call with this outcome has
// ended. For all others Settle takes the time at which the call was sent, and any other may
// be passed.
func (t *Routes) Timed(o spillway.Outcome) bool {
	return o == spillway.OutcomeTimedOut || o.Accepted() && t.activity.timing()
}

// Limited notes that the in-flight limit of the caller was reached at the time now. Calls
// that time out after a long wait meanwhile say nothing about the backend.
func (t *Routes) Limited(now time.Time) {
	later(&t.activity.limited, t.clock.since(now), time.Second)
}

// weight is that of one call in the usual latency: after 16 calls that are slower, the
// usual latency has moved by two thirds of the difference.
const weight = 16

// latency is what the calls of a route usually take that are served.
type latency struct {
	usual  atomic.Int64 // nanoseconds; 0: unknown
	served atomic.Int64 // when the last of them was sent
}

// add takes in a call that was served. Two at once may count as one.
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

// activity is when calls were last sent that were served, and that found the in-flight limit
// reached, to the second, and when one last timed out. Zero is never.
type activity struct{ served, limited, timed atomic.Int64 }

// explains reports whether rule 3 holds for a call.
func (a *activity) explains(sent, waited time.Duration) bool {
	return waited >= longWait && (a.served.Load() > int64(sent) || a.limited.Load() > int64(sent))
}

// timing reports whether latencies are measured.
func (a *activity) timing() bool { return a.timed.Load() > 0 }

// later sets t to the time at, unless it is less than step later than what t holds: not
// each call writes what all calls read.
func later(t *atomic.Int64, at, step time.Duration) {
	if was := t.Load(); was == 0 || int64(at) > was+int64(step) {
		t.Store(int64(at))
	}
}
