package shed

import "math"

const (
	idle    = 0.01  // share of the time in which the executor may find the room empty
	roomy   = 49.0  // places per processor at most
	shallow = 2.0   // and at least
	lesson  = 50    // admissions between two changes of the factor
	costly  = 0.008 // share of capacity lost from which rooms are made deeper
	cheap   = 0.003 // and below which shallower
)

// depth is how many may wait for each processor. A deep room keeps the executor
// busy through any gap between arrivals, and makes all wait for that.
//
// If arrivals and work are random, and ρ times as many come as can be served, a
// room of K places is empty for a share (ρ-1)/(ρ^(K+1)-1) of the time (the queue
// M/M/1/K). Solved for K, that is the depth which leaves the executor idle for no
// more than a given share:
//
//	K = ln(1 + (ρ-1)/idle) / ln ρ - 1      where 1 - 1/ρ is refused
//
// That is 23 places where a tenth is refused, 6 at half and 2 at nine tenths, and 49
// are enough for all loads that are no more than that. For a class, what counts is
// what is refused of it and of all higher ones: lower ones do not keep the executor
// busy as long as they are refused outright. A factor is learnt on top, since real arrivals come in bursts,
// and work is not all alike: while requests are refused, an admission that found
// the executor idle and the room empty shows that it was too shallow, as capacity
// was lost. If hardly any did, it can be shallower.
type depth struct {
	factor   float64
	admitted int
	starved  int // of those, found nothing to do
}

// of returns the depth where the share f is refused.
func (d *depth) of(f float64) float64 {
	excess := f / (1 - min(f, 0.999)) // ρ-1
	if excess == 0 {
		return roomy
	}
	k := math.Log1p(excess/idle)/math.Log1p(excess) - 1
	return min(max(k*d.factor, shallow), roomy)
}

// note counts an admission; f is the refused share of all requests.
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
	case lost > costly:
		d.factor = min(d.factor*1.3, greatest)
	case lost < cheap:
		d.factor = max(d.factor*0.9, least)
	}
}

// The bounds of the factor.
const least, greatest = 0.5, 16.0
