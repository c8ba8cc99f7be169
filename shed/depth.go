package shed

import "math"

const (
	idle    = 0.01 // share of time in which the processors may find the queue empty
	deepest = 49.0 // greatest depth in waiters: the formula for a load of 1 at 2 % idle
	shallow = 2.0  // least depth for each processor: one waiter to start, one in reserve
)

// A depth is the capacity of the queue for the processors. A deep queue keeps them busy through
// any gap between arrivals, which costs latency.
//
// If arrivals and work are random, and ρ times as many come as can be served, a
// queue of capacity K is empty for a share (ρ-1)/(ρ^(K+1)-1) of the time (the queue
// M/M/1/K). Solved for K, that is the depth which leaves the processor idle for no
// more than a given share:
//
//	K = ln(1 + (ρ-1)/idle) / ln ρ - 1      where 1 - 1/ρ is rejected
//
// K is 23 if a tenth is rejected, 6 at half and 2 at nine tenths. For a class, the rejected
// share of this class and all higher ones counts: lower classes do not keep the processor
// busy while they are rejected entirely. Processors that share a queue need no more together at a
// given ρ, and √m as much where ρ is about 1: there chance adds up over m of them.
//
// Real arrivals come in bursts, and a request that sleeps comes back. So the depth is multiplied by
// a factor that is learnt: an admission that finds a processor idle and the queue empty, while
// requests are rejected, shows lost capacity. The factor stays the same while the share idle of the
// capacity is lost.
type depth struct{ factor float64 }

// of returns the depth for so many processors if the share f is rejected.
func (d *depth) of(f float64, processors int) float64 {
	m := float64(processors)
	return max(min(capacityAt(f)*d.factor, deepest)*math.Sqrt(m), shallow*m)
}

// capacityAt returns K for the rejected share f.
func capacityAt(f float64) float64 {
	excess := f / (1 - min(f, 0.999)) // ρ-1
	if excess == 0 {
		return deepest
	}
	return min(deepest, math.Log1p(excess/idle)/math.Log1p(excess)-1)
}

// note counts an admission; f is the rejected share of the requests that reach the queue: it says
// how long an idle processor waits for the next one.
func (d *depth) note(starved bool, f float64) {
	lost := 0.0
	if starved {
		lost = 1 - f
	}
	if d.factor *= 1 + float64((lost-idle)/2); f <= noise {
		d.factor = 1
	}
	d.factor = min(max(d.factor, 1), deepest/shallow)
}
