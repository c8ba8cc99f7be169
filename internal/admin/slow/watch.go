package slow

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed90641741/spillway/internal/admin/histogram"
)

// A Route is where answers come from.
type Route struct{ Listener, Cluster, Route string }

const (
	window    = 10 // readings, one per second
	hour      = 360
	fewBlocks = 3 // are needed to know what is usual
	fewOf     = 5 // answers of a block
	factor    = 10
	margin    = 500 * time.Millisecond
	silence   = time.Minute // without an answer, for which a slow route stays slow
)

// A Watch finds slow routes. It is for one goroutine at a time; make one with [New]. A route takes
// 10 kB, or 26 kB if the answers of each second have all latencies from a microsecond to an hour.
type Watch struct {
	routes map[Route]*history
	last   block // of the route that is looked at
}

// New returns a Watch that knows no route.
func New() *Watch { return &Watch{routes: make(map[Route]*history)} }

// history is what is known of a route.
type history struct {
	read   Totals         // the last reading
	recent [window]second // what was counted between the last readings, in a ring
	seen   int            // readings ever
	usual  []time.Duration
	aside  []time.Duration // blocks since the route is slow
	slow   bool
	latest time.Time // of a window that was slow
	found  Slow
}

// A second is what was counted between two readings.
type second struct {
	cells       []histogram.Cell
	sum, waited time.Duration
}

// A block is what was counted in the last seconds.
type block struct {
	histogram.Counts // without the sums of buckets

	sum, waited time.Duration
}

// A Slow is a route whose requests take much longer than usual.
type Slow struct {
	Route

	Usual   time.Duration // the typical 95th percentile
	Now     time.Duration // the 90th percentile of the last 10 s
	Answers uint64        // in the last 10 s
	Waited  float64       // share of the latency before the requests were sent
	Others  int           // slow routes of the same cluster
}

// See gives the Watch the counts of a route. It must be called once per second for each route.
func (w *Watch) See(now time.Time, r Route, t *Totals) {
	h := w.routes[r]
	if h == nil {
		h = &history{read: *t} // what was counted before is not of the last second
		w.routes[r] = h
	}
	h.add(t)
	w.last = block{}
	for i := range h.recent {
		x := &h.recent[i]
		w.last.AddCells(x.cells)
		w.last.sum += x.sum
		w.last.waited += x.waited
	}
	h.judge(now, r, &w.last)
	if h.seen%window == 0 {
		h.end(&w.last)
	}
}

func (h *history) add(t *Totals) {
	counted := t.since(&h.read)
	h.read = *t
	x := &h.recent[h.seen%window]
	x.cells, x.sum, x.waited = counted.AppendCells(x.cells[:0]), counted.Sum(), counted.waited
	h.seen++
}

// judge finds out whether the answers of the last seconds are slow.
func (h *history) judge(now time.Time, r Route, last *block) {
	usual, known := h.typical()
	if !known {
		return
	}
	n, slow := last.Total(), last.Above(max(factor*usual, usual+margin))
	switch {
	case slow >= 8 && 2*slow >= n, slow >= 12 && 4*slow >= n:
		h.slow, h.latest = true, now
		h.found = Slow{
			Route: r, Usual: usual, Now: last.Quantile(0.9), Answers: n,
			Waited: float64(last.waited) / float64(max(last.sum, 1)),
		}
	case h.slow && (n > 0 || now.Sub(h.latest) > silence):
		h.slow = false
		h.usual, h.aside = append(h.usual, h.aside...), nil
	}
}

// typical returns the usual latency. It reports false until it is known.
func (h *history) typical() (time.Duration, bool) {
	if len(h.usual) < fewBlocks {
		return 0, false
	}
	return slices.Sorted(slices.Values(h.usual))[len(h.usual)/2], true
}

func (h *history) end(last *block) {
	if last.Total() < fewOf {
		return
	}
	p95 := last.Quantile(0.95)
	if h.slow {
		if h.aside = append(h.aside, p95); len(h.aside) >= hour {
			h.usual, h.aside, h.slow = h.aside, nil, false
		}
		return
	}
	h.usual = append(h.usual, p95)
	h.usual = h.usual[max(0, len(h.usual)-hour):]
}

// Found returns the slow routes, of each cluster the one with most answers. The cluster with most
// answers is the first.
func (w *Watch) Found() (all []Slow) {
	for _, h := range w.routes {
		if h.slow {
			all = append(all, h.found)
		}
	}
	slices.SortFunc(all, func(a, b Slow) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Route.Route, b.Route.Route),
			cmp.Compare(a.Listener, b.Listener))
	})
	first := all[:0]
	for _, x := range all {
		if i := slices.IndexFunc(first, func(y Slow) bool { return y.Cluster == x.Cluster }); i >= 0 {
			first[i].Others++
		} else {
			first = append(first, x)
		}
	}
	return first
}
