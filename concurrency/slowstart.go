package concurrency

import (
	"math"
	"time"
)

// While requests end and none of them is answered, it is not known whether the backend works at all. Then one request at
// a time is let in, until one is answered. After that twice as many for each turn that is answered: slow start, as in TCP. It is a bound
// in addition to the state, and begins with the first requests that end: no time in which all was well is needed.

// slowStart is what is known of the answers of a key.
type slowStart struct {
	most       float64       // so many may be at work; +Inf is no bound
	known      bool          // something was answered
	usually    float64       // mean number of requests that end without an answer between two that are answered
	unanswered int           // requests that have ended since the last answer
	found      int           // requests that were at work when the first of them ended
	ended      int           // answers of this turn
	turn       time.Duration // when it began
}

// bounds reports whether there is a bound.
func (s *slowStart) bounds() bool { return !math.IsInf(s.most, 1) }

// unknown reports whether nothing is answered.
func (s *slowStart) unknown() bool { return s.most == 1 }

// silent takes in that a request has ended without an answer, when so many were at work, and reports whether the rest has to wait. That
// number must have ended, so that a client cannot stop others by leaving, and sixteen times what usually does; a quarter if nothing was ever
// answered.
func (s *slowStart) silent(at time.Duration, working int) (stops bool) {
	if s.unanswered == 0 {
		s.found = working
	}
	s.unanswered++
	enough := float64(s.found) / turns
	if s.known {
		enough = max(float64(s.found), round/2*s.usually)
	}
	if s.unknown() || float64(s.unanswered) < max(round/2, enough) {
		return false
	}
	s.most, s.ended, s.turn = 1, 0, at
	return true
}

// answered takes in an answer at a time. The bound ends with a turn in which it held back nothing; it last did so at held.
func (s *slowStart) answered(at, held time.Duration) {
	if !s.unknown() {
		s.usually += float64((float64(s.unanswered) - s.usually) / round)
	}
	s.unanswered, s.known = 0, true
	if !s.bounds() {
		return
	}
	s.most++
	if s.ended++; 2*float64(s.ended) < s.most {
		return
	}
	if held < s.turn {
		s.most = math.Inf(1)
	}
	s.ended, s.turn = 0, at
}
