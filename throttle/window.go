package throttle

import "time"

// buckets is the number of parts of the window, which slides by one part at a time.
const buckets = 30

// counts has the calls that ended in a span of time.
type counts struct {
	accepts   float64       // accepted by the backend
	byBackend float64       // rejected by the backend, or timed out
	rejected  float64       // rejected here, and never sent
	longest   time.Duration // the longest time that one of byBackend took
}

func (c *counts) add(d counts) {
	c.accepts += d.accepts
	c.byBackend += d.byBackend
	c.rejected += d.rejected
	c.longest = max(c.longest, d.longest)
}

func (c *counts) requests() float64 { return c.accepts + c.byBackend + c.rejected }

// window holds the counts of the last Window, in buckets.
type window struct {
	width   time.Duration // of one bucket
	head    int64         // number of the current bucket, counted from time 0
	end     time.Duration // end of the current bucket
	buckets [buckets]counts
	sum     counts
}

// advance moves the window up to a time, and does nothing for a time before the current bucket.
func (w *window) advance(at time.Duration) {
	if at < w.end {
		return
	}
	head := int64(at / w.width)
	for n := min(head-w.head, buckets); n > 0; n-- {
		w.buckets[(head-n+1)%buckets] = counts{}
	}
	w.head, w.end = head, time.Duration(head+1)*w.width
	w.sum = counts{} // added up again, so that rounding errors do not accumulate
	for _, b := range w.buckets {
		w.sum.add(b)
	}
}

func (w *window) add(d counts) {
	w.buckets[w.head%buckets].add(d)
	w.sum.add(d)
}

// acceptsPerSecond returns the rate of the accepts in the window.
func (w *window) acceptsPerSecond(at time.Duration) float64 {
	span := min(at, at-w.end+buckets*w.width)
	return w.sum.accepts / max(span, w.width).Seconds()
}
