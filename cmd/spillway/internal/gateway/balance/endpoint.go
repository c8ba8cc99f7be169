package balance

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/ejection"
	"github.com/seed90641741/spillway/throttle"
)

// An Endpoint is what is known of one address. It outlives the [Set] that it was made
// for where the address is in the next one, too. It is safe for concurrent use; make one
// with [NewEndpoint].
//
// Times are counted since the start that all endpoints of a cluster share.
type Endpoint struct {
	busy     atomic.Int64 // attempts in flight
	throttle *throttle.Throttle

	unhealthy   atomic.Bool
	unreachable atomic.Int64                         // until when no connection is tried
	leftOut     [spillway.Criticalities]atomic.Int64 // until when, by class
	ejected     atomic.Int64                         // until when
	since       atomic.Int64                         // when slow start began

	latency  latency
	evidence ejection.Evidence
	load     report
	failure  record
}

// endpointK is the K of the throttle of an endpoint: it rejects at most a fifth of the
// attempts that it gets, while there are others. A smaller K learns more slowly that an
// endpoint has recovered; the default K of 2 is for a whole backend, where the alternative is
// an error.
const endpointK = 1.25

// endpointWindow is how long the throttle of an endpoint remembers. It is shorter than
// that of a cluster: a wrong decision costs a detour, not an error.
const endpointWindow = 10 * time.Second

// NewEndpoint returns an Endpoint without any history.
func NewEndpoint() *Endpoint { return newEndpoint(nil) }

func newEndpoint(random func() float64) *Endpoint {
	x := new(Endpoint)
	x.throttle, _ = throttle.New(throttle.Config{K: endpointK, Window: endpointWindow, MinRequests: -1, Rand: random}) // constants that are in range
	x.since.Store(longAgo)
	return x
}

// longAgo is before any other time. Its distance to any time can be computed.
const longAgo = math.MinInt64 / 2

// Busy returns how many attempts are in flight.
func (x *Endpoint) Busy() int { return int(x.busy.Load()) }

// End ends an attempt that [Set.Pick] began. It must be called once for each Pick, when
// the answer has ended.
func (x *Endpoint) End() { x.busy.Add(-1) }

// avoid is how long an endpoint that could not be connected to gets nothing, if there
// are others.
const avoid = time.Second

// maxLeftOut is the longest hint that is obeyed; Envoy's max_ejection_time.
const maxLeftOut = 5 * time.Minute

// State says why an endpoint is skipped.
type State uint8

// The values of State, in the order in which they are looked at.
const (
	Available   State = iota
	Unhealthy         // it fails its health checks
	Unreachable       // it could not be connected to
	LeftOut           // it asked to be left alone
	Ejected           // it is an outlier
)

// state returns why x is skipped at a time, for calls of a class.
func (x *Endpoint) state(at int64, class int) State {
	switch {
	case x.unhealthy.Load():
		return Unhealthy
	case x.unreachable.Load() > at:
		return Unreachable
	case x.leftOut[class].Load() > at:
		return LeftOut
	case x.ejected.Load() > at:
		return Ejected
	}
	return Available
}

// soft reports whether s is a judgement that panic mode ignores.
func (s State) soft() bool { return s == LeftOut || s == Ejected }

// later moves a time forward, never back.
func later(to *atomic.Int64, at int64) {
	for was := to.Load(); at > was; was = to.Load() {
		if to.CompareAndSwap(was, at) {
			return
		}
	}
}
