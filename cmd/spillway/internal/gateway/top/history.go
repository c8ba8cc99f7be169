package top

import (
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

// samplesPerWindow bounds the samples that are kept of a process, whatever the window and the interval.
const samplesPerWindow = 10

// A reason is the key of a [query.Reason].
type reason struct{ policy, outcome, reason, mode string }

// A name is the key of a row of a [query.List].
type name struct{ name, reason, class, mode string }

// The lists of names.
const (
	routes = iota
	customers
	callers
	lists
)

// A sample has the counts of a process at one time.
type sample struct {
	at      time.Time // here, with the monotonic clock
	time    time.Time // there
	counts  query.Counts
	reasons map[reason][spillway.Criticalities]float64
	names   [lists]map[name]uint64 // growth of the rows since the first sample, or since they came into the list
}

// A history has the samples of one process over a window, the oldest first.
type history struct {
	window  time.Duration
	samples []sample
	started time.Time
	rows    [lists]query.List // of the last sample
}

// take adds an answer. It reports whether the answer is new, and whether it is of another process than the one before.
func (h *history) take(now time.Time, s *query.State) (fresh, restarted bool) {
	if n := len(h.samples); n > 0 {
		last := &h.samples[n-1]
		if restarted = !s.Started.Equal(h.started) || fell(&last.counts, s.Counts); restarted {
			*h = history{window: h.window}
		} else if s.Time.Equal(last.time) {
			return false, false
		}
	}
	h.started = s.Started
	h.add(sample{at: now, time: s.Time, counts: *s.Counts, reasons: reasonsOf(s), names: h.grow(s)})
	return true, restarted
}

// fell reports whether a count is lower than before.
func fell(then, now *query.Counts) bool {
	was := then.Accounts()
	for i, is := range now.Accounts() {
		for class := range is {
			if is[class] < was[i][class] {
				return true
			}
		}
	}
	return now.Offered < then.Offered
}

// add appends a sample. It takes the place of the last one if that is too close to the one before.
func (h *history) add(x sample) {
	if n := len(h.samples); n > 1 && h.samples[n-1].at.Sub(h.samples[n-2].at) < h.window/samplesPerWindow {
		h.samples = h.samples[:n-1]
	}
	h.samples = append(h.samples, x)
	enough := h.window - h.window/(2*samplesPerWindow) // the sample that is nearest to a window ago
	for len(h.samples) > 2 && x.at.Sub(h.samples[1].at) >= enough {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
}

func reasonsOf(s *query.State) map[reason][spillway.Criticalities]float64 {
	all := make(map[reason][spillway.Criticalities]float64, len(s.Reasons))
	for i := range s.Reasons {
		r := &s.Reasons[i]
		all[reason{r.Policy, r.Outcome, r.Reason, r.Mode}] = r.Total
	}
	return all
}

// grow returns the growth of the rows of all lists, with that since the last sample.
func (h *history) grow(s *query.State) (grown [lists]map[name]uint64) {
	for i, list := range [lists]query.List{routes: s.Top.Routes, customers: s.Top.Customers, callers: s.Top.Callers} {
		grown[i] = make(map[name]uint64, len(list.Rows))
		var before map[name]uint64
		if n := len(h.samples); n > 0 {
			before = h.samples[n-1].names[i]
		}
		for _, r := range list.Rows {
			k := name{r.Name, r.Reason, r.Class, r.Mode}
			grown[i][k] += before[k]
			if len(h.samples) > 0 {
				grown[i][k] += growth(&h.rows[i], r)
			}
		}
		h.rows[i] = list
	}
	return grown
}

// growth returns by how much a row has grown at least, since a list before.
func growth(before *query.List, r query.Row) uint64 {
	var was uint64
	if n := len(before.Rows); n > 0 && before.Others > 0 {
		was = before.Rows[n-1].Count // it may have been next
	}
	for _, b := range before.Rows {
		if b.Name == r.Name && b.Reason == r.Reason && b.Class == r.Class && b.Mode == r.Mode {
			was = b.Count
		}
	}
	return r.Count - min(was, r.Count)
}

// span returns the first and the last sample, and the seconds between them. It returns no seconds without two samples.
func (h *history) span() (then, now *sample, seconds float64) {
	n := len(h.samples)
	if n < 2 {
		return nil, nil, 0
	}
	then, now = &h.samples[0], &h.samples[n-1]
	return then, now, elapsed(now.time.Sub(then.time), now.at.Sub(then.at)).Seconds()
}

// clockError is how much the time of a process and the time here may differ: the figures of a process are of its
// last second, and an answer takes some time.
const clockError = 3 * time.Second

// elapsed returns the time that passed there, or the time here if the clock there was set.
func elapsed(there, here time.Duration) time.Duration {
	if there <= 0 || (there-here).Abs() > clockError {
		return max(here, time.Millisecond)
	}
	return there
}
