package concurrency

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// Requests of a key need not wait for the same thing: an answer from a cache needs nothing of the pool that
// the others wait for. In a growing queue such quick requests end while more is in flight than a slow one had on average, so that
// a line through all latencies falls while each slow one waits longer; and they are gone in the first moment of a drain,
// so that throughput seems to fall. Where there are several, only the others are measured.
//
// A mixture has two groups of latencies with a gap between them, and a queue moves one of the groups. Latencies of one
// kind have no gap, however long their tail is. So the last answers are counted by octave: a valley of two octaves divides them.

// spread counts the answers of a window by the octave of their latency.
type spread struct {
	valley int // octave where it begins; 0 while nothing is quick
	found  int // the same, as of the last window alone
	n      int
	of     [octaves + 2]uint8
	past   [octaves]uint16 // of about eight windows before this one
}

const (
	octaves = 26
	lowest  = -18                // logarithm of the first one, 4 µs; the last one begins at two minutes
	window  = int(turns * round) // answers
)

// octave returns the least latency of an octave.
func octave(o int) float64 { return math.Float64frombits(uint64(o+lowest+bias) << mantissa) }

// How the hardware writes a number: the logarithm plus bias, before the mantissa.
const (
	bias     = 1023
	mantissa = 52
)

// add takes in a latency, and reports whether that ended a window after which there are quick requests and were none
// before, or the reverse.
func (s *spread) add(took float64) (changed bool) {
	o := int(math.Float64bits(took)>>mantissa) - bias - lowest
	s.of[min(max(o, 0), octaves-1)]++
	if s.n++; s.n < window {
		return false
	}
	before, found := s.valley, s.look()
	if before == 0 || !s.divides(before) { // it stays while it is empty
		s.valley = 0
	}
	if s.valley == 0 && found == s.found {
		s.valley = found // in two windows: latencies that change have two groups once
	}
	s.remember()
	s.begin(found)
	return s.valley != before
}

// begin begins a window after one with such a valley.
func (s *spread) begin(found int) { s.found, s.n, s.of = found, 0, [octaves + 2]uint8{} }

// look returns where the window has a valley, or 0. Most of the time must be that of the answers beyond it.
func (s *spread) look() int {
	total, quick, below := 0.0, 0.0, 0
	for o, n := range s.of[:octaves] {
		total += float64(float64(n) * octave(o))
	}
	for o := 1; o < octaves; o++ {
		below += int(s.of[o-1])
		quick += float64(float64(s.of[o-1]) * octave(o-1))
		if s.gap(o, below) && quick < total-quick {
			return o
		}
	}
	return 0
}

// divides reports whether the window has a gap at an octave.
func (s *spread) divides(o int) bool {
	below := 0
	for _, n := range s.of[:o] {
		below += int(n)
	}
	return s.gap(o, below)
}

// gap reports whether so many answers below an octave are several, and few took that one or the next.
func (s *spread) gap(o, below int) bool {
	few := several * several * float64(min(below, s.n-below))
	return float64(below) > several*float64(s.n) && float64(s.of[o]+s.of[o+1]) <= few
}

// remember adds the window to the past.
func (s *spread) remember() {
	for o := range s.past {
		s.past[o] += uint16(s.of[o]) - s.past[o]/parkTime
	}
}

// bound returns the latency from which a request is not quick, 0 if none are.
func (s *spread) bound() float64 {
	if s.valley == 0 {
		return 0
	}
	return octave(s.valley + 1)
}

// usual returns about the median latency beyond the valley. It is without a queue if most of the past was.
func (s *spread) usual() float64 {
	slow := s.past[s.valley+1:]
	total, below := uint16(0), uint16(0)
	for _, n := range slow {
		total += n
	}
	for i, n := range slow {
		if below += n; 2*below >= total {
			return (1 + doubled) / 2 * octave(s.valley+1+i)
		}
	}
	return 0
}

// isQuick reports whether an answer is quick. What is quick is looked for while there is no limit, neither of the key nor of all: in a
// drain and a probe the others have another share.
func (l *limit) isQuick(took time.Duration, open bool) bool {
	s := &l.spread
	if !open {
		s.begin(0)
	} else if s.add(inSeconds(took)) {
		if s.valley > 0 {
			l.latency.reset(l.at, s.usual())
		}
		l.restart()
	}
	return inSeconds(took) < s.bound()
}

// counted returns which part of the requests is measured. What is in service is the same with all requests and with these:
// quick ones raise the throughput and shorten the latency.
func (e *evidence) counted() float64 { return max(1-e.skipped, 1.0/(2*round)) }

// skips counts what is quick.
func (e *evidence) skips(quick bool) {
	e.skipped = elapsed.Trim(e.skipped - float64(e.skipped/(2*round)))
	if quick {
		e.skipped += 1.0 / (2 * round)
	}
}

// pays reports whether a limit serves more than the quick requests that would end without one. It cannot tell them from the others: the
// part of all requests that it admits must be more than the share of the quick ones.
func (l *limit) pays() bool {
	if l.state == Limiting {
		return float64(l.passed) >= l.skipped*float64(l.passed+l.turned)
	}
	slow := float64(l.ended)
	came := slow + float64(max(0, l.working-l.were))
	quick := slow * l.skipped / l.counted()
	return slow/came >= quick/(came+quick)
}
