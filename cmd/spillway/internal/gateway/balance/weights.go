package balance

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Load is what an endpoint reports of itself: the fields of an ORCA report by which
// endpoints are weighed.
type Load struct {
	// Application and CPU are utilizations, 1 where the endpoint is as busy as it
	// should be. Application counts if it is above zero.
	Application, CPU float64
	// QPS and EPS are requests and errors per second.
	QPS, EPS float64
}

// weight returns the weight by gRFC A58, and whether the report is valid.
func (l Load) weight(penalty float64) (float64, bool) {
	utilization := l.Application
	if !(utilization > 0) {
		utilization = l.CPU
	}
	if !(l.QPS > 0) || !(utilization > 0) { // also if they are no numbers
		return 0, false
	}
	if l.EPS > 0 {
		utilization += l.EPS / l.QPS * penalty
	}
	w := l.QPS / utilization
	return w, w > 0 && !math.IsInf(w, 0) && !math.IsNaN(w)
}

// report is what an endpoint last said of its load.
type report struct {
	next atomic.Int64 // before that no report is looked at

	mu     sync.Mutex
	weight float64
	at     int64 // of the report
	since  int64 // when the endpoint began to report
	known  bool
}

// minReportInterval is how often a report of an endpoint is looked at. More often
// teaches nothing, as weights are computed no more often than that, and would let
// endpoints spend the time of the proxy.
const minReportInterval = 100 * time.Millisecond

// Wants reports whether a load report of x is due. If so, the caller should call [Set.Report]:
// the next one is not due for a while.
func (s *Set) Wants(now time.Time, x *Endpoint) bool {
	if s.config.LoadReports == nil {
		return false
	}
	at := s.at(now)
	next := x.load.next.Load()
	return at >= next && x.load.next.CompareAndSwap(next, at+int64(minReportInterval))
}

// Report takes in a load report of x. One that is of no use is ignored.
func (s *Set) Report(now time.Time, x *Endpoint, l Load) {
	c := s.config.LoadReports
	if c == nil {
		return
	}
	w, ok := l.weight(c.ErrorUtilizationPenalty)
	if !ok {
		return
	}
	r, at := &x.load, s.at(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known || at-r.at >= int64(c.WeightExpirationPeriod) {
		r.since = at
	}
	r.weight, r.at, r.known = w, at, true
}

// current returns the weight that counts, zero without one.
func (r *report) current(at int64, c *LoadReports) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known || at-r.at >= int64(c.WeightExpirationPeriod) || at-r.since < int64(c.BlackoutPeriod) {
		return 0
	}
	return r.weight
}

// maxRelativeWeight bounds weights, by the median. Machines of one cluster rarely differ
// by more, and a report may be wrong.
const maxRelativeWeight = 10

// rampSteps is in how many steps at least an endpoint starts slowly.
const rampSteps = 50

// refresh computes the weights again if it is time to.
func (s *Set) refresh(at int64) {
	due := s.due.Load()
	if at < due || s.config.LoadReports == nil && s.config.SlowStart == nil {
		return
	}
	period := int64(time.Second)
	if r := s.config.LoadReports; r != nil {
		period = int64(r.WeightUpdatePeriod)
	}
	if c := s.config.SlowStart; c != nil {
		period = min(period, max(int64(c.Window)/rampSteps, 1))
	}
	if !s.due.CompareAndSwap(due, at+period) {
		return // another goroutine does
	}
	w, reports := s.reported(at)
	equal := true
	for i, x := range s.all {
		w[i] *= s.config.SlowStart.share(at - x.since.Load())
		equal = equal && w[i] == w[0]
	}
	if equal && !reports {
		s.weights.Store(nil)
	} else { // by turns, so that those that have not reported yet get attempts, and report
		s.weights.Store(&w)
	}
}

// reported returns the weights by load reports, bounded, with a mean of 1, and whether
// there are any reports.
func (s *Set) reported(at int64) (w []float64, reports bool) {
	w = make([]float64, len(s.all))
	var known []float64
	if c := s.config.LoadReports; c != nil {
		for i, x := range s.all {
			if w[i] = x.load.current(at, c); w[i] > 0 {
				known = append(known, w[i])
			}
		}
	}
	if len(known) == 0 {
		return slices.Repeat([]float64{1}, len(w)), false
	}
	slices.Sort(known)
	median := known[(len(known)-1)/2] // the lower one: of two, the one that claims less
	sum := 0.0
	for i := range w {
		if w[i] > 0 {
			w[i] = min(max(w[i]/median, 1.0/maxRelativeWeight), maxRelativeWeight)
			sum += w[i]
		}
	}
	mean := sum / float64(len(known))
	for i := range w {
		if w[i] /= mean; w[i] == 0 {
			w[i] = 1
		}
	}
	return w, true
}

// share returns the factor of the weight of an endpoint that began so long ago; nil is no slow start.
func (c *SlowStart) share(elapsed int64) float64 {
	if c == nil || elapsed >= int64(c.Window) {
		return 1
	}
	grown := max(float64(elapsed), 0) / float64(c.Window)
	return max(c.MinWeightPercent/100, math.Pow(grown, 1/c.Aggression))
}

// Weight returns the weight of x relative to the mean at the time of the last pick.
func (s *Set) Weight(index int) float64 {
	if w := s.weights.Load(); w != nil {
		return (*w)[index]
	}
	return 1
}
