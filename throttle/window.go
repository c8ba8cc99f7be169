package throttle

import "time"

// buckets is how many parts the window has, and so how smoothly it slides.
const buckets = 30

// counts is what ended in some stretch of time.
type counts struct {
	accepts   float64       // taken on by the backend
	byBackend float64       // rejected there
	rejected  float64       // here, never sent
	longest   time.Duration // that one of them took, which the backend rejected
}

func (c *counts) add(d counts) {
	c.accepts += d.accepts
	c.byBackend += d.byBackend
	c.rejected += d.rejected
	c.longest = max(c.longest, d.longest)
}

func (c *counts) requests() float64 { return c.accepts + c.byBackend + c.rejected }

// window holds counts over a sliding stretch of time, in buckets, for Stats.
type window struct {
	width   time.Duration // of one bucket
	head    int64         // number of the bucket that is being filled
	end     time.Duration // of that bucket
	buckets [buckets]counts
	sum     counts
}

// advance moves the window up to a time. One before the current bucket counts
// into that bucket.
func (w *window) advance(at time.Duration) {
	if at < w.end {
		return
	}
	head := int64(at / w.width)
	for n := min(head-w.head, buckets); n > 0; n-- {
		w.buckets[(head-n+1)%buckets] = counts{}
	}
	w.head, w.end = head, time.Duration(head+1)*w.width
	w.sum = counts{} // added up afresh, so that rounding never accumulates
	for _, b := range w.buckets {
		w.sum.add(b)
	}
}

func (w *window) add(d counts) {
	w.buckets[w.head%buckets].add(d)
	w.sum.add(d)
}

// acceptsPerSecond is what the backend has accepted in the window.
func (w *window) acceptsPerSecond(at time.Duration) float64 {
	span := min(at, at-w.end+buckets*w.width)
	return w.sum.accepts / max(span, w.width).Seconds()
}
