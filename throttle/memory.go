package throttle

import (
	"math"
	"time"
)

// memory is the slow memory: decayed counts of calls, and the decayed time in which they were made.
type memory struct {
	requests, accepts, seconds float64
	age                        time.Duration // since all was last decayed
}

// steps is in how many steps a Window decays: fewer are seen in the rate, more take time.
const steps = 30

func (m *memory) pass(passed, window time.Duration) {
	m.seconds += passed.Seconds()
	if m.age += passed; m.age < window/steps {
		return
	}
	keep := math.Exp(-m.age.Seconds() / window.Seconds())
	*m = memory{requests: m.requests * keep, accepts: m.accepts * keep, seconds: m.seconds * keep}
}

// rate returns the accepts per second.
func (m *memory) rate() float64 {
	if m.accepts == 0 {
		return 0
	}
	return m.accepts / max(m.seconds, shortest)
}

// shortest is the shortest time, in seconds, in which a rate is measured.
const shortest = 0.25

// run is the fast memory: the calls since the backend last accepted one of K.
type run struct {
	since         time.Duration // when the first rejection was heard of
	from          time.Duration // when that call was sent
	sent, accepts float64
}

func (r *run) excess(k float64) float64 { return r.sent - float64(k*r.accepts) }

func (r *run) refuse(at, sent time.Duration) {
	if r.sent == 0 {
		r.since, r.from = at, sent
	}
	r.sent++
}

func (r *run) accept(sent time.Duration, k float64) {
	if r.sent == 0 || sent < r.from {
		return
	}
	r.sent++
	r.accepts++
	if r.excess(k) <= 0 {
		*r = run{}
	}
}

// streak is the accepts since the last rejection.
type streak struct {
	refused time.Duration // when the last rejection was heard of
	since   time.Duration // when the first accept was
	accepts float64
}

// accept adds an accept, unless the call was sent before the last rejection arrived.
func (s *streak) accept(at, sent time.Duration) bool {
	if sent <= s.refused {
		return false
	}
	if s.accepts == 0 {
		s.since = at
	}
	s.accepts++
	return true
}

// proven reports whether the streak has a chance below 1 in 256 where the backend accepts one call
// in K, and is no burst of a rate limiter that refills each second.
func (s *streak) proven(at time.Duration, c *Config) bool {
	return at-s.since >= c.ProbeInterval && s.accepts*math.Log(c.K) >= minEvidence
}

// minEvidence is the logarithm of 256.
const minEvidence = 8 * math.Ln2
