package shed

import "math"

const (
	idle     = 0.01  // share of time in which a processor may find the queue empty
	deepest  = 49.0  // waiters per processor, at most: the formula for a load of 1 at 2 % idle
	shallow  = 2.0   // and at least: one to start, one in reserve
	lesson   = 50    // admissions between two changes of the factor
	tooIdle  = 0.008 // share of capacity lost above which the queue becomes deeper: below idle
	tooQuiet = 0.003 // and below which it becomes shallower: less than half of it
)

// depth is the capacity of the queue for each processor. A deep queue keeps the processor
// busy through any gap between arrivals, which costs latency.
//
// If arrivals and work are random, and ρ times as many come as can be served, a
// queue of capacity K is empty for a share (ρ-1)/(ρ^(K+1)-1) of the time (the queue
// M/M/1/K). Solved for K, that is the depth which leaves the executor idle for no
// more than a given share:
//
//	K = ln(1 + (ρ-1)/idle) / ln ρ - 1      where 1 - 1/ρ is rejected
//
// K is 23 if a tenth is rejected, 6 at half and 2 at nine tenths. For a class, the rejected
// share of this class and all higher ones counts: lower classes do not keep the processor
// busy while they are rejected entirely. Real arrivals come in bursts, so the depth is
// multiplied by a factor. While requests are rejected, an admission that finds the
// processor idle and the queue empty shows lost capacity: the factor grows. If such
// admissions are rare, it shrinks.
type depth struct {
	factor   float64
	admitted int
	starved  int // of those, found an idle processor and an empty queue
}

// of returns the depth if the share f is rejected.
func (d *depth) of(f float64) float64 {
	return min(max(capacityAt(f)*d.factor, shallow), deepest)
}

// capacityAt returns K for the rejected share f.
func capacityAt(f float64) float64 {
	excess := f / (1 - min(f, 0.999)) // ρ-1
	if excess == 0 {
		return deepest
	}
	return min(deepest, math.Log1p(excess/idle)/math.Log1p(excess)-1)
}

// note counts an admission; f is the rejected share of all requests.
func (d *depth) note(starved bool, f float64) {
	d.admitted++
	if starved {
		d.starved++
	}
	if d.admitted < lesson {
		return
	}
	lost := float64(d.starved) / float64(d.admitted) * (1 - f)
	d.admitted, d.starved = 0, 0
	switch {
	case f < noise:
		d.factor += (1 - d.factor) / 10
	case lost > tooIdle:
		d.factor = min(d.factor*1.3, greatest)
	case lost < tooQuiet:
		d.factor = max(d.factor*0.9, least)
	}
}

// The bounds of the factor: work that is more regular than random needs half the depth,
// and bursts of sixteen count as one arrival.
const least, greatest = 0.5, 16.0
