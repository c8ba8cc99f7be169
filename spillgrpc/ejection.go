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

// ejections are the connections of a channel whose endpoints reject calls because the
// endpoint itself is overloaded. Such an endpoint is left out for the time that it asked for. The
// number of entries is at most that of the connections. The nil *ejections leaves nothing out.
type ejections struct {
	until   atomic.Int64 // by when all are back, in nanoseconds since 1970; zero if none is out
	out     atomic.Int64 // how many were out when they were last counted,
	counted atomic.Int64 // then
	all     sync.Map     // balancer.SubConn → *endpoint
}

// endpoint is what is known of one. Calls and rejections fade with recentTime.
type endpoint struct {
	ejection.Ejection

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
)

// ended takes in how a call has ended, and returns the recent share of rejections.
func (x *endpoint) ended(now time.Time, rejected float64) float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	fade := math.Exp(-max(now.Sub(x.at), 0).Seconds() / recentTime.Seconds())
	x.calls, x.rejected, x.at = x.calls*fade+1, x.rejected*fade+rejected, now
	return x.rejected / x.calls
}

// of returns what is known of the endpoint of a connection.
func (e *ejections) of(sc balancer.SubConn) *endpoint {
	if e == nil {
		return nil
	}
	x, known := e.all.Load(sc)
	if !known {
		x, _ = e.all.LoadOrStore(sc, new(endpoint))
	}
	return x.(*endpoint)
}

// maxPicks is how many endpoints are looked at for one pick, at most. If all of them are
// left out, so is probably the rest, and the last one gets the call.
const maxPicks = 16

var errEjected = errors.New("spillgrpc: the endpoint is left out for a while")

// ended takes in how a call to an endpoint has ended.
func (e *ejections) ended(x *endpoint, info balancer.DoneInfo) {
	if x == nil {
		return
	}
	f, rejected := rejection(info)
	now := time.Now()
	if x.ended(now, rejected) < tooMany {
		return
	}
	if until, ejected := x.Failed(now, f); ejected {
		e.counted.Store(0)
		for old := e.until.Load(); old < until.UnixNano(); old = e.until.Load() {
			if e.until.CompareAndSwap(old, until.UnixNano()) {
				break
			}
		}
	}
}

// rejection returns what the failure of a call means, and 1 if it is a rejection because the
// endpoint itself is overloaded.
func rejection(info balancer.DoneInfo) (f fault.Failure, is float64) {
	if info.Err == nil {
		return f, 0
	}
	s := status.Convert(info.Err)
	if s.Code() != codes.Unavailable {
		return f, 0
	}
	f = fault.Failure{Overload: true, Party: fault.Server}
	listen(&f, s, info.Trailer)
	if f.Scope != fault.ScopeTask {
		return f, 0
	}
	return f, 1
}

// keep forgets all connections but those that are open.
func (e *ejections) keep(open map[balancer.SubConn]bool) {
	e.all.Range(func(sc, _ any) bool {
		if !open[sc.(balancer.SubConn)] {
			e.all.Delete(sc)
		}
		return true
	})
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
func (e *ejections) count(now time.Time) int64 {
	last, at := e.counted.Load(), now.UnixNano()
	if at-last >= int64(10*time.Millisecond) && e.counted.CompareAndSwap(last, at) {
		n := int64(0)
		e.all.Range(func(_, x any) bool {
			if x.(*endpoint).Active(now) {
				n++
			}
			return true
		})
		e.out.Store(n)
	}
	return e.out.Load()
}

func (e *ejections) active(now time.Time, sc balancer.SubConn) bool {
	x, ok := e.all.Load(sc)
	return ok && x.(*endpoint).Active(now)
}

// elsewhere returns another pick of the child in the place of r, if r is of an endpoint
// that is left out and the child has others. Policies that take turns have one within as
// many picks as there are endpoints left out; calls that pick at the same time may take it
// away, hence twice as many. If more than half of the endpoints would be left out, none is (the
// panic threshold of Envoy): the others would be overloaded by the load of those.
func (p *picker) elsewhere(info balancer.PickInfo, r balancer.PickResult) balancer.PickResult {
	now, some := p.ejections.any()
	if !some {
		return r
	}
	out := p.ejections.count(now)
	if 2*out > p.endpoints {
		return r
	}
	for range min(2*out, maxPicks) {
		if !p.ejections.active(now, r.SubConn) {
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
