package cost

import "time"

// delay is the number of intervals between the end of an interval and its use: the calls that
// began in it have mostly ended by then.
const delay = 4

// An interval is a time, the processor time that was used in it, and the calls that ran in it.
type interval struct {
	from, to time.Duration
	used     time.Duration // up to from; then, between from and to
	unknown  bool          // used is not known
	counts   []float64     // by place
}

// valid reports whether calls can explain what was used in the interval.
func (x *interval) valid(length time.Duration) bool {
	return !x.unknown && x.used >= 0 && x.to-x.from <= delay*length
}

// A window is the open interval, and the intervals that wait for calls to end.
type window struct {
	intervals [delay + 1]interval
	now       int // the open one
	waiting   int // intervals before it
	open      bool
}

func (w *window) init(places int) {
	for i := range w.intervals {
		w.intervals[i].counts = make([]float64, places)
	}
}

// from returns when the open interval began.
func (w *window) from() time.Duration { return w.intervals[w.now].from }

// end ends the open interval, if there is one. used is the processor time of the process, if
// that is known. It returns an interval that has waited long enough, if there is one.
func (w *window) end(at, used time.Duration, known bool) *interval {
	if !w.open {
		return nil
	}
	x := &w.intervals[w.now]
	x.to, x.used, x.unknown = at, used-x.used, x.unknown || !known
	w.now = (w.now + 1) % len(w.intervals)
	if w.waiting < delay {
		w.waiting++
		return nil
	}
	return &w.intervals[w.now]
}

// begin opens the next interval.
func (w *window) begin(at, used time.Duration, known bool) {
	x := &w.intervals[w.now]
	clear(x.counts)
	x.from, x.used, x.unknown = at, used, !known
	w.open = true
}

// add counts a call in each interval by the part of its time that was in the interval.
func (w *window) add(place int, begin, end time.Duration) {
	x := &w.intervals[w.now]
	if begin >= x.from {
		x.counts[place]++
		return
	}
	took, to := float64(end-begin), end
	for i := range w.waiting + 1 {
		x = &w.intervals[(w.now+len(w.intervals)-i)%len(w.intervals)]
		if to <= begin {
			return
		}
		x.counts[place] += float64(to-max(x.from, begin)) / took
		to = x.from
	}
}

// forget removes the calls of a place.
func (w *window) forget(place int) {
	for i := range w.intervals {
		w.intervals[i].counts[place] = 0
	}
}
