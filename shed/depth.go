package shed

const (
	roomy   = 64.0  // places per processor while nothing is refused
	usual   = 8.0   // the depth to begin with
	shallow = 2.0   // the least depth learnt
	deep    = 64.0  // the greatest
	lesson  = 50    // admissions between two changes of the learnt depth
	costly  = 0.015 // share of capacity lost from which it is made deeper
	cheap   = 0.006 // and below which shallower
)

// depth is how many may wait for each processor. A deep room keeps the executor
// busy through any gap between arrivals, and makes all wait for that. While
// requests are refused, an admission that found the executor idle and the room
// empty shows that the room was too shallow: capacity was lost. If hardly any
// did, it can be shallower.
type depth struct {
	learnt   float64
	admitted int
	starved  int // of those, found nothing to do
}

// of returns the depth for a class with the refused share f: the whole room for
// one that is served, the learnt depth for one that is refused.
func (d *depth) of(f float64) float64 {
	served := (1 - f) * (1 - f)
	served *= served
	served *= served
	return d.learnt + max(0, roomy-d.learnt)*served*served
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
		d.learnt += (usual - d.learnt) / 10
	case lost > costly:
		d.learnt = min(d.learnt*1.3+0.5, deep)
	case lost < cheap:
		d.learnt = max(d.learnt*0.9, shallow)
	}
}
