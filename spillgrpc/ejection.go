package spillgrpc

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/ejection"
)

// ejections says which endpoints of a channel get fewer calls, because they have an overload of
// their own. One that rejects most calls is left out for the time that it asked for; others get
// a share of their turns. The nil *ejections leaves nothing out.
type ejections struct {
	until   atomic.Int64 // by when all have all their turns, in nanoseconds since 1970; zero if they do
	counted atomic.Int64 // when they were last counted; zero: count them
	out     atomic.Int32 // how many were out then,
	thinned atomic.Int32 // and how many others had less than their share
	flight  atomic.Int64 // attempts in flight
}

// endpoint is what is known of one.
type endpoint struct {
	ejection.Ejection
	share

	evidence ejection.Evidence
	flight   atomic.Int64 // attempts
	recent   atomic.Int32 // calls that were served, and are not yet in evidence
}

const (
	// batch is how many calls are served before the clock is read for them, or as many as are
	// served before the next rejection. Reading it for each call costs more than the rest of the pick.
	batch = 16
	// An endpoint is passed over while it has more than crowd times as many attempts in flight as the
	// others on average, and slack more: it is slower than they are, whatever it says. With equal
	// endpoints that is rare, and so the turns stay as even as the policy underneath has them.
	crowd, slack = 2, 8
)

// rejected takes in a rejection at a time, and reports whether the endpoint rejects most
// calls, and returns those of the last 100 ms. The class of a call is not known here.
func (x *endpoint) rejected(at int64) (most bool, calls float64) {
	x.served(at, 0)
	return x.evidence.Rejected(at, spillway.Critical, x.flight.Load())
}

// served takes in n more served calls and those since the last batch, and returns how many it
// had in the last 100 ms.
func (x *endpoint) served(at int64, n int32) (calls float64) {
	return x.evidence.Served(at, spillway.Critical, int(x.recent.Swap(0)+n))
}

// maxPicks is how many endpoints are looked at for one pick, at most. If all of them are
// left out, so is probably the rest, and the last one gets the call.
const maxPicks = 16

var errEjected = errors.New("spillgrpc: another endpoint was picked")

// began takes in that an attempt at an endpoint begins.
func (e *ejections) began(x *endpoint) {
	if e != nil {
		e.flight.Add(1)
		x.flight.Add(1)
	}
}

// ended takes in how a call to an endpoint has ended. Most calls are served, and only counted.
func (e *ejections) ended(x *endpoint, info balancer.DoneInfo) {
	if e == nil || x == nil {
		return
	}
	e.flight.Add(-1)
	x.flight.Add(-1)
	if info.Err != nil {
		if f, rejected := rejection(info); rejected {
			e.rejected(x, time.Now(), f)
			return
		}
	} else if len(info.Trailer) > 0 && waited(info.Trailer) {
		e.waited(x, time.Now())
		return
	}
	if x.recent.Add(1) == batch {
		x.served(time.Now().UnixNano(), 0)
	}
}

// rejected takes in that an endpoint has rejected a call: it is left out if it rejects many, and
// else gets fewer turns.
func (e *ejections) rejected(x *endpoint, now time.Time, f fault.Failure) {
	if x.Active(now) {
		return // it was sent before
	}
	most, calls := x.rejected(now.UnixNano())
	if most {
		if back, ejected := x.Failed(now, f); ejected {
			e.changed(back.UnixNano())
			return
		}
	}
	e.changed(x.lower(now, calls))
}

// waited takes in that an endpoint has served a call after a wait.
func (e *ejections) waited(x *endpoint, now time.Time) {
	if x.Active(now) {
		return
	}
	e.changed(x.lower(now, x.served(now.UnixNano(), 1)))
}

// waited reports whether the trailer of a served call says so.
func waited(trailer metadata.MD) bool {
	v := trailer[keyScope]
	return len(v) == 1 && fault.ParseScope(v[0]) == fault.ScopeTask
}

// changed takes in that an endpoint has less than its share until a time.
func (e *ejections) changed(until int64) {
	e.counted.Store(0)
	for old := e.until.Load(); old < until; old = e.until.Load() {
		if e.until.CompareAndSwap(old, until) {
			break
		}
	}
}

// rejection returns what the failure of a call means, and whether it is a rejection because the
// endpoint itself is overloaded. It need not be if the deadline of the call was too close.
func rejection(info balancer.DoneInfo) (f fault.Failure, is bool) {
	s := status.Convert(info.Err)
	if s.Code() != codes.Unavailable {
		return f, false
	}
	f = fault.Failure{Overload: true, Party: fault.Server}
	listen(&f, s, info.Trailer)
	return f, f.Scope == fault.ScopeTask && !f.TooLate
}

// any returns the time if some endpoint may have less than all its turns then.
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

// count returns how many endpoints are out, and how many others have less than their share. It
// counts again after a rejection and every 10 ms.
func (e *ejections) count(now time.Time, all []*endpoint) (out, thinned int) {
	last, at := e.counted.Load(), now.UnixNano()
	if d := at - last; (d < 0 || d >= int64(10*time.Millisecond)) && e.counted.CompareAndSwap(last, at) {
		least := longestRegrowth
		for _, x := range all {
			if !x.Active(now) {
				least = min(least, x.missing(at))
			}
		}
		n, less := int32(0), int32(0)
		for _, x := range all {
			switch {
			case x.Active(now):
				n++
			case x.look(at, least):
				less++
			}
		}
		e.out.Store(n)
		e.thinned.Store(less)
	}
	return int(e.out.Load()), int(e.thinned.Load())
}

// elsewhere returns another pick of the child instead of r, if r is of an endpoint
// that is left out, or does not take its turn, and the child has others. Policies that take turns
// have one within as many picks as there are such endpoints; calls that pick at the same time may
// take it away, hence twice as many. If more than half of the endpoints would be left out, none
// is (the panic threshold of Envoy): the others would be overloaded by the load of those.
func (p *picker) elsewhere(info balancer.PickInfo, r balancer.PickResult) balancer.PickResult {
	now, some := p.ejections.any()
	if !some {
		return p.repick(info, r, len(p.endpoints)-1, p.overloaded)
	}
	out, thinned := p.ejections.count(now, p.endpoints)
	panics := 2*out > len(p.endpoints)
	return p.repick(info, r, 2*(out+thinned)+1, func(x *endpoint) bool {
		return x != nil && (!panics && x.Active(now) || !x.turn() || p.overloaded(x))
	})
}

// overloaded reports whether an endpoint has many more attempts in flight than the others.
func (p *picker) overloaded(x *endpoint) bool {
	if x == nil || p.ejections == nil {
		return false
	}
	mine, others := x.flight.Load(), int64(len(p.endpoints)-1)
	return mine > slack && (mine-slack)*others > crowd*(p.ejections.flight.Load()-mine)
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
