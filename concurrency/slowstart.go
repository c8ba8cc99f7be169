package concurrency

import (
	"math"
	"time"
)

// While requests end and none of them is answered, it is unknown whether the backend works at all.
// Then one request at a time is let in until one is answered. After that the bound doubles for each
// turn that is answered: slow start, as in TCP. The bound holds in addition to the state. It begins
// with the first requests that end, so no healthy period is needed before.

// slowStart is the bound on the requests of a key, and what is known of their answers.
type slowStart struct {
	most  float64 // number of requests that may be working; +Inf means no bound
	known bool    // at least one request was answered
	// usually is the mean number of requests that end without an answer between two answers.
	usually    float64
	unanswered int           // requests that have ended since the last answer
	found      int           // requests that were working when the first of these ended
	ended      int           // answers in this turn, which ends when the bound has doubled
	turn       time.Duration // when this turn began
}

// bounds reports whether there is a bound.
func (s *slowStart) bounds() bool { return !math.IsInf(s.most, 1) }

// unknown reports whether the bound is one request, because none is answered.
func (s *slowStart) unknown() bool { return s.most == 1 }

// silent records that a request has ended without an answer while so many were working. It reports
// whether the bound becomes one request. For that, requests must have ended without an answer many
// times in a row: at least 16 times; as many times as requests were working when the first of them
// ended, so that one client cannot stop others by leaving; and 16 times as many as usually end
// between two answers. If nothing was ever answered, at least 16 times and a quarter of the
// requests that were working are enough.
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

// answered records an answer at a time. Each answer raises the bound by one. The bound ends with
// the first turn in which no request was held back. held is when the limit last held back a
// request.
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
