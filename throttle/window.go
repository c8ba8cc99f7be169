package throttle

import "time"

// buckets is how many parts the window has, and so how smoothly it slides.
const buckets = 30

// counts is what ended in some stretch of time. The numbers are not whole
// because refusals fade.
type counts struct {
	accepts  float64 // taken on by the backend
	refused  float64 // sent, and not taken on
	rejected float64 // refused here, never sent
}

func (c *counts) add(d counts) {
	c.accepts += d.accepts
	c.refused += d.refused
	c.rejected += d.rejected
}

func (c *counts) requests() float64 { return c.accepts + c.refused + c.rejected }

// window holds counts over a sliding stretch of time, in buckets.
type window struct {
	width   time.Duration // of one bucket
	base    time.Time     // the first time ever seen
	head    int64         // number of the bucket that is being filled
	end     time.Duration // its end, since base
	buckets [buckets]counts
	sum     counts
}

// advance moves the window up to now. A now before the current bucket counts
// into that bucket.
func (w *window) advance(now time.Time) {
	if w.base.IsZero() {
		w.base, w.end = now, w.width
	}
	at := now.Sub(w.base)
	if at < w.end {
		return
	}
	head := int64(at / w.width)
	for n := min(head-w.head, buckets); n > 0; n-- {
		w.buckets[(head-n+1)%buckets] = counts{}
	}
	w.head, w.end = head, time.Duration(head+1)*w.width
	w.resum()
}

// late is what the last tenth of the window holds.
func (w *window) late() (c counts) {
	for i := range min(buckets/10, w.head+1) {
		c.add(w.buckets[(w.head-i)%buckets])
	}
	return c
}

// resum adds up the buckets afresh, so that rounding never accumulates.
func (w *window) resum() {
	w.sum = counts{}
	for _, b := range w.buckets {
		w.sum.add(b)
	}
}

func (w *window) add(d counts) {
	w.buckets[w.head%buckets].add(d)
	w.sum.add(d)
}

// fade keeps the share of all refusals, the backend's and those made here.
func (w *window) fade(share float64) {
	for i := range w.buckets {
		w.buckets[i].refused *= share
		w.buckets[i].rejected *= share
	}
	w.resum()
}
