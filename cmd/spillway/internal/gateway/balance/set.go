package balance

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Set is the endpoints of a cluster. It is safe for concurrent use; make one with
// [New].
type Set struct {
	config Config
	start  time.Time
	all    []*Endpoint

	// calm is until when some endpoint may have to be skipped for what it said or did;
	// after that, and while none is unhealthy, all are available.
	calm atomic.Int64
	sick atomic.Int64 // endpoints that fail their health checks

	weights atomic.Pointer[[]float64] // nil: all are equal
	due     atomic.Int64              // when weights are to be computed again

	mu        sync.Mutex
	deadlines []float64 // of earliest deadline first
	virtual   float64   // the deadline of the last pick
	usual     []float64 // attempts in flight at a pick, averaged
	seen      []float64 // over how many

	interval atomic.Int64 // when the current one of outlier detection ends; 0: it has not begun
}

// New returns a Set of endpoints. start is the time from which all times of the endpoints
// are counted: that of the Set that they were in before, or now.
func New(c Config, start time.Time, endpoints []*Endpoint) *Set {
	c = c.withDefaults()
	s := &Set{config: c, start: start, all: endpoints}
	s.deadlines, s.usual, s.seen = make([]float64, len(endpoints)), make([]float64, len(endpoints)), make([]float64, len(endpoints))
	for i, x := range endpoints {
		s.usual[i] = float64(x.busy.Load())
		s.deadlines[i] = c.Rand() // proxies that start together do not pick in step
		s.calm.Store(max(s.calm.Load(), x.latest()))
		if x.unhealthy.Load() {
			s.sick.Add(1)
		}
	}
	return s
}

// Start returns the time from which all times are counted.
func (s *Set) Start() time.Time { return s.start }

// latest returns until when x may have to be skipped.
func (x *Endpoint) latest() int64 {
	at := max(x.unreachable.Load(), x.ejected.Load())
	for i := range x.leftOut {
		at = max(at, x.leftOut[i].Load())
	}
	return at
}

// State returns why x is skipped at the time now, for calls of the default class.
func (s *Set) State(now time.Time, x *Endpoint) State {
	return x.state(s.at(now), spillway.Critical.Index())
}

func (s *Set) at(now time.Time) int64 { return int64(now.Sub(s.start)) }

// SetHealthy takes in what health checks say of x.
func (s *Set) SetHealthy(now time.Time, x *Endpoint, healthy bool) {
	switch {
	case !x.unhealthy.CompareAndSwap(healthy, !healthy):
	case healthy:
		s.sick.Add(-1)
		s.Ramp(now, x)
	default:
		s.sick.Add(1)
	}
}

// Ramp begins the slow start of x.
func (s *Set) Ramp(now time.Time, x *Endpoint) {
	if s.config.SlowStart != nil {
		x.since.Store(max(s.at(now), 0))
		s.due.Store(0)
	}
}

// An Answer is the result of an attempt.
type Answer struct {
	// Outcome says what the attempt tells about the load of the endpoint. That of a
	// quota, which is about one customer, is OverQuota.
	Outcome spillway.Outcome
	// Class is the criticality of the call.
	Class spillway.Criticality
	// Hint is how long the endpoint asked to be left alone. It counts with Overloaded
	// only, if the endpoint rejects most of the class.
	Hint time.Duration
	// Failed says that the attempt failed in a way that counts for outlier detection.
	Failed bool
	// Unreachable says that there was no connection.
	Unreachable bool
}

// Answered takes in the answer to an attempt, once for each [Pick]. If the
// client left, nothing is known: Abandoned.
func (s *Set) Answered(now time.Time, p *Pick, a Answer) {
	x, at := s.all[p.Index], s.at(now)
	p.ticket.Settle(now, a.Outcome)
	if len(s.all) > 1 {
		x.measure(at, p, a.Outcome)
	}
	if a.Unreachable {
		s.skip(&x.unreachable, at+int64(avoid))
	}
	if x.obeys(at, a) {
		until := at + int64(min(a.Hint, maxLeftOut))
		for class := range a.Class.Index() + 1 {
			s.skip(&x.leftOut[class], until)
		}
	}
	if s.config.Outliers != nil && a.Outcome != spillway.OutcomeAbandoned {
		s.judge(at, x, a.Failed)
	}
}

// measure records the latency of an attempt. Rejections and failures are ignored.
func (x *Endpoint) measure(at int64, p *Pick, o spillway.Outcome) {
	switch d := time.Duration(at - p.at); o {
	case spillway.OutcomeServed, spillway.OutcomeTimedOut:
		x.latency.add(at, d, p.flight)
	case spillway.OutcomeAbandoned:
		x.latency.exceeds(at, d, p.flight)
	default:
	}
}

// obeys takes in whether an attempt was rejected, and reports whether its hint is to be obeyed.
func (x *Endpoint) obeys(at int64, a Answer) bool {
	switch a.Outcome {
	case spillway.OutcomeOverloaded:
		most, _ := x.evidence.Rejected(at, a.Class, x.busy.Load()-1)
		return most && a.Hint > 0
	case spillway.OutcomeServed, spillway.OutcomeFailed:
		x.evidence.Served(at, a.Class, 1)
	default:
	}
	return false
}

// skip makes an endpoint skipped until a time.
func (s *Set) skip(until *atomic.Int64, at int64) {
	later(until, at)
	later(&s.calm, at)
}

// Wait returns the time until the first retry hint of the endpoints for a class expires; zero
// if an endpoint has sent no hint.
func (s *Set) Wait(now time.Time, class spillway.Criticality) time.Duration {
	at := s.at(now)
	least := int64(maxLeftOut)
	for _, x := range s.all {
		least = min(least, x.leftOut[class.Index()].Load()-at)
	}
	return time.Duration(max(least, 0))
}
