package spillgrpc

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/ejection"
)

// ejections are the connections of a channel whose endpoint has refused a call for
// overload of its own, and is left out for as long as it asked. It keeps no more than
// there are connections. The nil *ejections leaves nothing out.
type ejections struct {
	until atomic.Int64 // by when all are back, in nanoseconds since 1970; zero if none is out
	known atomic.Int64
	all   sync.Map // balancer.SubConn → *ejection.Ejection
}

// maxPicks is how many endpoints are looked at for one pick, at most. If all of them are
// left out, so is probably the rest, and the last one gets the call.
const maxPicks = 16

var errEjected = errors.New("spillgrpc: the endpoint is left out for a while")

// failed takes in how a call on a connection has ended.
func (e *ejections) failed(sc balancer.SubConn, info balancer.DoneInfo) {
	s := status.Convert(info.Err)
	if e == nil || s.Code() != codes.Unavailable {
		return
	}
	f := fault.Failure{Overload: true, Party: fault.Server}
	listen(&f, s, info.Trailer)
	if f.Scope != fault.ScopeTask {
		return
	}
	x, known := e.all.Load(sc)
	if !known {
		if x, known = e.all.LoadOrStore(sc, new(ejection.Ejection)); !known {
			e.known.Add(1)
		}
	}
	if until, ejected := x.(*ejection.Ejection).Failed(time.Now(), f); ejected {
		for old := e.until.Load(); old < until.UnixNano(); old = e.until.Load() {
			if e.until.CompareAndSwap(old, until.UnixNano()) {
				break
			}
		}
	}
}

// forget forgets a connection that is no more.
func (e *ejections) forget(sc balancer.SubConn) {
	if _, known := e.all.LoadAndDelete(sc); known {
		e.known.Add(-1)
	}
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
	if e.until.CompareAndSwap(until, 0) {
		e.all.Range(func(sc, _ any) bool {
			e.forget(sc.(balancer.SubConn))
			return true
		})
	}
	return now, false
}

func (e *ejections) active(now time.Time, sc balancer.SubConn) bool {
	x, ok := e.all.Load(sc)
	return ok && x.(*ejection.Ejection).Active(now)
}

// elsewhere returns another pick of the child in the place of r, if r is of an endpoint
// that is left out and the child has others. Policies that take turns have one within as
// many picks as there are endpoints left out; calls that pick at the same time may take it
// away, hence twice as many. If more than half of the endpoints were left out, none is (the
// panic threshold of Envoy): the others would be overloaded by the load of those.
func (p *picker) elsewhere(info balancer.PickInfo, r balancer.PickResult) balancer.PickResult {
	now, some := p.ejections.any()
	if !some || 2*p.ejections.known.Load() > p.endpoints {
		return r
	}
	for range min(2*p.ejections.known.Load(), maxPicks) {
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
