package inflight

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// classes keeps places free for higher classes. A place that is taken cannot be taken back,
// so it has to be free before.
type classes struct {
	of      [spillway.Criticalities]demand
	rotates atomic.Int64 // when the current span ends, in nanoseconds since 1970
	reached atomic.Int64 // when the limit was last reached, likewise
}

// demand is what a class wants.
type demand struct {
	held   atomic.Int64 // places
	peak   atomic.Int64 // the most in the current span, refused ones included
	before atomic.Int64 // in the span before
	called atomic.Int64 // when it last called, in nanoseconds since 1970, to a second
	_      [32]byte     // classes do not share a cache line
}

const (
	// span is how long a peak is remembered, and at most twice as long: longer than most
	// calls take, and soon over when the load is.
	span = time.Second
	// peakShare bounds the places kept for the peak of a class: a quarter of the limit. A
	// class that needs half of the limit finds all of these taken for 1 % of its calls.
	peakShare = 4
	// seldomShare is the part of the limit that is kept for higher classes which call seldom:
	// a sixteenth. Below 16, a place is too much.
	seldomShare = 16
	// seldom is how long after a call a class still counts.
	seldom = time.Minute
)

// reserved returns how many places below the limit a class must leave free at the time at.
func (c *classes) reserved(at int64, class int, limit uint32) uint32 {
	c.rotate(at)
	tight := at-c.reached.Load() < 2*int64(span)
	n, kept := int64(0), int64(0)
	for i := class + 1; i < len(c.of); i++ {
		d := &c.of[i]
		if at-d.called.Load() < int64(seldom) {
			kept = int64(limit / seldomShare)
		}
		if tight {
			n += max(0, min(max(d.peak.Load(), d.before.Load())-d.held.Load(), int64(limit/peakShare)))
		}
	}
	return uint32(max(n, kept))
}

// rotate begins another span if it is time to.
func (c *classes) rotate(at int64) {
	ends := c.rotates.Load()
	if at < ends && ends-at <= int64(span) || !c.rotates.CompareAndSwap(ends, at+int64(span)) {
		return
	}
	for i := range c.of {
		d := &c.of[i]
		d.before.Store(d.peak.Load())
		d.peak.Store(d.held.Load())
	}
}

// took counts a place that a class has taken.
func (c *classes) took(at int64, class int) {
	d := &c.of[class]
	d.wants(at, d.held.Add(1))
}

// refused counts a place that a class has wanted and not got, as all were taken if full.
func (c *classes) refused(at int64, class int, full bool) {
	d := &c.of[class]
	if full {
		c.reached.Store(at)
		d.wants(at, max(d.peak.Load(), d.held.Load())+1)
	}
}

func (d *demand) wants(at, n int64) {
	if at-d.called.Load() > int64(span) {
		d.called.Store(at)
	}
	for peak := d.peak.Load(); n > peak; peak = d.peak.Load() {
		if d.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}
