package attempts

import (
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// Buckets is how many bars the histogram has. The last one holds all attempts
// from Buckets−1 up, however large the number that the caller claims.
const Buckets = 8

// Counts says how many requests were attempt 0, 1, and so on.
type Counts [Buckets]uint64

// Total returns how many requests there were.
func (c Counts) Total() (n uint64) {
	for _, k := range c {
		n += k
	}
	return n
}

// RetryShare returns how many of all requests were not first attempts, from 0 to
// 1. It is 0 where there were none.
func (c Counts) RetryShare() float64 {
	n := c.Total()
	if n == 0 {
		return 0
	}
	return float64(n-c[0]) / float64(n)
}

// parts is into how many segments each of the two bounds divides the window. A
// segment ends at the earlier bound, so that there are at most twice as many, and
// the one that is being filled.
const (
	parts    = 20
	segments = 2*parts + 1
)

// segment is a stretch of the window.
type segment struct {
	start  time.Duration
	counts [Buckets]uint32
}

// window counts attempt numbers in recent history. The zero window is empty.
type window struct {
	clock elapsed.Clock
	at    time.Duration // the latest time seen
	ring  [segments]segment
	first int // the oldest segment
	used  int
	sum   Counts
}

// see moves the window up to now; a time that steps back is the latest one seen.
func (w *window) see(now time.Time, c *Config) {
	w.at = w.clock.See(now)
	for w.used > 0 && w.ring[w.first].start+c.Window <= w.at {
		w.drop()
	}
}

func (w *window) observe(now time.Time, attempt int, c *Config) {
	w.see(now, c)
	i := min(max(attempt, 0), Buckets-1)
	w.current(c).counts[i]++
	w.sum[i]++
	for w.sum[0] > uint64(c.FirstAttempts) { // more than there are in one segment
		w.drop()
	}
}

// current returns the segment that is being filled, a new one if the last is full.
func (w *window) current(c *Config) *segment {
	if w.used > 0 {
		s := &w.ring[(w.first+w.used-1)%segments]
		full := (uint32(c.FirstAttempts) + parts - 1) / parts
		if w.at-s.start < c.Window/parts && s.counts[0] < full {
			return s
		}
	}
	if w.used == segments {
		w.drop()
	}
	s := &w.ring[(w.first+w.used)%segments]
	*s = segment{start: w.at}
	w.used++
	return s
}

// drop leaves the oldest segment behind.
func (w *window) drop() {
	for i, n := range w.ring[w.first].counts {
		w.sum[i] -= uint64(n)
	}
	w.first = (w.first + 1) % segments
	w.used--
}
