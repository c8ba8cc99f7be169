package cost

import "time"

// delay is the number of intervals that end before an ended interval is used: by then most of the
// calls that began in it have ended, too.
const delay = 4

// An interval is a period, with the processor time that was used and the calls that ran in it.
type interval struct {
	from, to time.Duration
	used     time.Duration // before end: processor time at from; after it: that of the interval
	unknown  bool          // used is unknown, because Config.CPU returned an error
	counts   []float64     // calls by index of the key; a part of a call counts as a fraction
}

// valid reports whether the interval can be used. length is Config.Interval.
func (x *interval) valid(length time.Duration) bool {
	return !x.unknown && x.used >= 0 && x.to-x.from <= delay*length
}

// A window is the open interval, and the ended intervals whose calls may still run.
type window struct {
	intervals [delay + 1]interval
	now       int // index of the open interval
	waiting   int // number of ended intervals before it
	open      bool
}

func (w *window) init(places int) {
	for i := range w.intervals {
		w.intervals[i].counts = make([]float64, places)
	}
}

// from returns when the open interval began.
func (w *window) from() time.Duration { return w.intervals[w.now].from }

// end ends the open interval. used is the processor time of the process so far, if known is set. It
// returns the interval that has waited long enough, or nil.
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

// add counts a call of the key at an index. Each interval counts the fraction of the call's time
// that lies in it.
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

// forget removes the calls of the key at an index.
func (w *window) forget(place int) {
	for i := range w.intervals {
		w.intervals[i].counts[place] = 0
	}
}
