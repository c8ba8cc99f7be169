package spillgrpc

import (
	"math"
	"sync/atomic"
	"time"
)

// A share is the part of its turns that an endpoint gets. It is 1 until the endpoint rejects
// calls, or reports that they wait. Each such call lowers the logarithm of the share by 1/n, where
// n is the number of calls in the last 100 ms, and the share grows with the time constant
// regrowth. An endpoint that cannot serve all its turns then gets the calls that it serves and one
// call in a hundred more (100 ms/regrowth), at any rate of calls. With more calls, a queue would
// stand before it, and each call would wait, including the calls that are served.
//
// Shares are relative: the greatest one of a channel is always 1. Where all endpoints reject
// alike, all have their turns.
type share struct {
	full  atomic.Int64  // when it is 1 again, in nanoseconds since 1970
	step  atomic.Uint32 // the share as of the last look, of wholeTurn; 0 before the first one
	turns atomic.Uint32 // steps added up
}

const (
	// regrowth is the time constant of the growth of a share. An endpoint that has recovered
	// from half of its capacity gets all its turns 7 s later. With half of it, twice as many
	// calls wait or are rejected, and with a third the p99 with one weak endpoint of four is 5 ms
	// longer.
	regrowth = 10 * time.Second
	// leastShare bounds shares: a few calls show that an endpoint has recovered.
	leastShare = 0.02
	wholeTurn  = 1 << 16
)

// longestRegrowth is the time from leastShare to 1.
var longestRegrowth = int64(-math.Log(leastShare) * float64(regrowth))

// lower takes in a rejection at the time now, after so many recent calls, and returns when the
// share is 1 again.
func (s *share) lower(now time.Time, calls float64) (full int64) {
	at := now.UnixNano()
	for {
		old := s.full.Load()
		full = min(max(old, at)+int64(float64(regrowth)/max(calls, 1)), at+longestRegrowth)
		if s.full.CompareAndSwap(old, full) {
			return full
		}
	}
}

// missing returns how far the share is from 1, as the time until it has grown to it.
func (s *share) missing(at int64) int64 { return min(max(s.full.Load()-at, 0), longestRegrowth) }

// look makes the share relative to the greatest one, which misses least, and reports whether
// it is below 1.
func (s *share) look(at, least int64) bool {
	if least > 0 {
		s.full.Add(-least)
	}
	missing := s.missing(at)
	s.step.Store(uint32(wholeTurn * math.Exp(-float64(missing)/float64(regrowth))))
	return missing > 0
}

// turn reports whether the endpoint takes the turn that it is given. The turns that it takes
// are evenly spread.
func (s *share) turn() bool {
	step := s.step.Load()
	if step == 0 || step == wholeTurn {
		return true
	}
	n := s.turns.Add(step)
	return n/wholeTurn != (n-step)/wholeTurn
}
