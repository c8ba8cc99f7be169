package throttle

import (
	"sync/atomic"
	"time"
)

// A call that timed out counts as one that the backend did not accept: it may be too busy
// to answer. It counts for nothing where something else explains the wait:
//
//  1. Its wait is more than farLonger times the usual latency of its route, and calls of
//     the route that were sent after it were served meanwhile.
//  2. It waited longWait or more, and meanwhile the backend served calls of any route, or
//     the in-flight limit was reached.
//
// A backend with too many calls answers all of them later. Its usual latency grows with
// its queue, so that no timeout is far longer than that. One that answers nothing has
// nothing that it served meanwhile.
//
// The second rule is for calls that are kept open by design, such as long polls. The
// in-flight limit bounds them better than the throttle: of a limit that is reached by
// calls of 10 s no more than a tenth is sent per second.
const (
	farLonger = 10
	longWait  = 10 * time.Second
)

// weight is that of one call in the usual latency: after 16 calls that are slower, the
// usual latency has moved by two thirds of the difference.
const weight = 16

// latency is what the calls of a route usually take that are served.
type latency struct {
	usual  atomic.Int64 // nanoseconds; 0: unknown
	served atomic.Int64 // when the last of them was sent, by the clock of the backend
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

// explains reports whether rule 1 holds for a call.
func (l *latency) explains(sent, waited time.Duration) bool {
	usual := l.usual.Load()
	return usual > 0 && int64(waited) > farLonger*usual && l.served.Load() > int64(sent)
}

// activity is the input of rule 2: when calls were last sent that were served, and that
// found the in-flight limit reached, to the second.
type activity struct{ served, limited atomic.Int64 }

// explains reports whether rule 2 holds for a call.
func (a *activity) explains(sent, waited time.Duration) bool {
	return waited >= longWait && (a.served.Load() > int64(sent) || a.limited.Load() > int64(sent))
}

// later sets t to the time at, unless it is less than step later than what t holds: not
// each call writes what all calls read. Zero is never.
func later(t *atomic.Int64, at, step time.Duration) {
	if was := t.Load(); was == 0 || int64(at) > was+int64(step) {
		t.Store(int64(at))
	}
}
