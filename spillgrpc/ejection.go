package spillgrpc

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/ejection"
)

// ejections says which endpoints of a channel are left out, because they reject calls for an
// overload of their own. Each is left out for the time that it asked for. The nil *ejections
// leaves nothing out.
type ejections struct {
	until   atomic.Int64 // by when all are back, in nanoseconds since 1970; zero if none is out
	out     atomic.Int64 // how many were out when they were last counted,
	counted atomic.Int64 // then
}

// endpoint is what is known of one. Calls and rejections fade with recentTime.
type endpoint struct {
	ejection.Ejection

	recent atomic.Int32 // calls that were served since mu was last locked

	mu              sync.Mutex
	calls, rejected float64
	at              time.Time
}

const (
	// recentTime is over what time rejections are averaged. A limit that measures a base latency
	// rejects calls for some 30 ms, which is no overload.
	recentTime = 100 * time.Millisecond
	// tooMany is the share of rejections from which an endpoint is left out. Under high load
	// every endpoint rejects a call now and then; to leave it out for that would overload
	// the others.
	tooMany = 0.5
	// batch is how many calls are served before the clock is read for them. They count as
	// served at that time, or at that of the next rejection. So of an endpoint that was idle,
	// up to batch rejections are not enough to leave it out. Reading the clock for each call
	// costs more than the rest of the pick.
	batch = 16
)

// average takes in, at the time now, the calls that were served and n more that were rejected,
// and returns the recent share of rejections.
func (x *endpoint) average(now time.Time, n float64) float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	fade := math.Exp(-max(now.Sub(x.at), 0).Seconds() / recentTime.Seconds())
	x.calls = x.calls*fade + float64(x.recent.Swap(0)) + n
	x.rejected, x.at = x.rejected*fade+n, now
	return x.rejected / x.calls
}

// maxPicks is how many endpoints are looked at for one pick, at most. If all of them are
// left out, so is probably the rest, and the last one gets the call.
const maxPicks = 16

var errEjected = errors.New("spillgrpc: another endpoint was picked")

// ended takes in how a call to an endpoint has ended. Most calls are served, and only counted.
func (e *ejections) ended(x *endpoint, info balancer.DoneInfo) {
	if e == nil || x == nil {
		return
	}
	if info.Err != nil {
		if f, rejected := rejection(info); rejected {
			e.rejected(x, time.Now(), f)
			return
		}
	}
	if x.recent.Add(1) == batch {
		x.average(time.Now(), 0)
	}
}

// rejected takes in that an endpoint has rejected a call, and leaves it out if it rejects many.
func (e *ejections) rejected(x *endpoint, now time.Time, f fault.Failure) {
	if x.average(now, 1) < tooMany {
		return
	}
	until, ejected := x.Failed(now, f)
	if !ejected {
		return
	}
	e.counted.Store(0)
	for old := e.until.Load(); old < until.UnixNano(); old = e.until.Load() {
		if e.until.CompareAndSwap(old, until.UnixNano()) {
			break
		}
	}
}

// rejection returns what the failure of a call means, and whether it is a rejection because the
// endpoint itself is overloaded.
func rejection(info balancer.DoneInfo) (f fault.Failure, is bool) {
	s := status.Convert(info.Err)
	if s.Code() != codes.Unavailable {
		return f, false
	}
	f = fault.Failure{Overload: true, Party: fault.Server}
	listen(&f, s, info.Trailer)
	return f, f.Scope == fault.ScopeTask
}

// any returns the time if some endpoint may be left out by then.
func (e *ejections) any() (now time.Time, some bool) {
	if e == nil {
		return now, false
	}
	until := e.until.Load()
	if until == 0 {
		return now, false
	}
	if now = time.Now(); now.UnixNano() < until {
		return now, true
	}
	e.until.CompareAndSwap(until, 0)
	return now, false
}

// count returns how many endpoints are out. It counts again after an ejection and every 10 ms.
func (e *ejections) count(now time.Time, all []*endpoint) int {
	last, at := e.counted.Load(), now.UnixNano()
	if d := at - last; (d < 0 || d >= int64(10*time.Millisecond)) && e.counted.CompareAndSwap(last, at) {
		n := int64(0)
		for _, x := range all {
			if x.Active(now) {
				n++
			}
		}
		e.out.Store(n)
	}
	return int(e.out.Load())
}

// elsewhere returns another pick of the child instead of r, if r is of an endpoint
// that is left out and the child has others. Policies that take turns have one within as
// many picks as there are endpoints left out; calls that pick at the same time may take it
// away, hence twice as many. If more than half of the endpoints would be left out, none is (the
// panic threshold of Envoy): the others would be overloaded by the load of those.
func (p *picker) elsewhere(info balancer.PickInfo, r balancer.PickResult) balancer.PickResult {
	now, some := p.ejections.any()
	if !some {
		return r
	}
	out := p.ejections.count(now, p.endpoints)
	if 2*out > len(p.endpoints) {
		return r
	}
	return p.repick(info, r, 2*out, func(x *endpoint) bool { return x != nil && x.Active(now) })
}

// repick returns another pick of the child instead of r, if r is of an endpoint that is not
// wanted. It picks n times at most.
func (p *picker) repick(info balancer.PickInfo, r balancer.PickResult, n int, unwanted func(*endpoint) bool) balancer.PickResult {
	for range min(n, maxPicks) {
		if !unwanted(endpointOf(r.SubConn)) {
			break
		}
		next, err := p.child.Pick(info)
		if err != nil || next.SubConn == nil {
			break
		}
		if r.Done != nil {
			r.Done(balancer.DoneInfo{Err: errEjected})
		}
		r = next
	}
	return r
}
