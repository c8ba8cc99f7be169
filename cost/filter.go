package cost

import "math"

// constants are the constants of the model; see the package comment.
type constants struct {
	limit      float64 // highest |e| that is believed, in standard deviations
	memory     float64 // time constant for old intervals, in seconds
	tick       float64 // resolution of processor time, in seconds
	firstNoise float64 // φ at the start
	leastNoise float64 // lower bound of φ
	mostNoise  float64 // upper bound of φ
	noiseRate  float64 // weight of an interval in φ, 0 to 1
	rejected   float64 // first error of the cost of a rejected call, in seconds
	background float64 // upper bound of the error of the background, in processors
	digits     float64 // relative rounding error of a variance
}

var standard = constants{
	limit: 3, memory: 300, tick: 4e-3, firstNoise: 1, leastNoise: 0.01, mostNoise: 1000, noiseRate: 1. / 8,
	rejected: 100e-6, background: 0.05, digits: 1e-11,
}

// A filter is a Kalman filter: it has the costs and the covariance of their errors, by the index of
// the key.
type filter struct {
	constants

	cost  []float64   // θ, in seconds
	p     [][]float64 // P, the covariance, in seconds²
	prior []float64   // upper bounds of the variances, in seconds²; 0 for a new key
	noise float64     // φ
	odd   bool        // e of the latest interval was beyond the limit
	above bool        // e of the latest interval was above zero
	px    []float64   // scratch memory for predict
}

func (f *filter) init(places int) {
	f.cost, f.prior, f.px = make([]float64, places), make([]float64, places), make([]float64, places)
	f.p = make([][]float64, places)
	for i := range f.p {
		f.p[i] = make([]float64, places)
	}
	f.constants, f.noise = standard, standard.firstNoise
	f.prior[background] = f.first(background, 1, 0)
	f.p[background][background] = f.prior[background]
}

// forget resets the cost at an index to that of a new key.
func (f *filter) forget(place int) {
	f.cost[place], f.prior[place] = 0, 0
	for i := range f.p {
		f.p[i][place], f.p[place][i] = 0, 0
	}
}

// deviation returns the standard error of a cost, in seconds.
func (f *filter) deviation(place int) float64 { return math.Sqrt(f.p[place][place]) }

// learn updates the costs from an interval. x is its length in seconds, followed by its number of
// calls for each index; y is the processor time that was used, in seconds.
func (f *filter) learn(x []float64, y float64) {
	f.forgetOld(x, y)
	px, variance, rounding := f.predict(x)
	e := y
	for i, n := range x {
		e -= float64(n * f.cost[i])
	}
	noise := float64(f.noise*f.spread(x, y)) + float64(f.tick*f.tick)
	total := variance + noise + rounding
	surprise := float64(e*e) / total
	explained := surprise <= f.limit*f.limit
	if !explained {
		e = math.Copysign(f.limit*math.Sqrt(total), e)
	}
	for i, row := range f.p[:len(x)] {
		f.cost[i] += float64(px[i]*e) / total
		// the least variance that the interval can leave, without rounding errors
		least := row[i] * (noise + rounding) / total
		for j := range row[:len(x)] {
			row[j] -= float64(px[i]*px[j]) / total
		}
		row[i] = max(row[i], least)
	}
	f.bound(len(x))
	f.noise += float64(float64(f.noiseRate*f.noise*noise/total) * (min(surprise, float64(f.limit*f.limit)) - 1))
	f.noise = min(max(f.noise, f.leastNoise), f.mostNoise)
	f.project(len(x))
	f.disagree(x, y, explained, e > 0)
}

// predict returns, for an interval, the variance of the processor time that the costs predict, its
// covariance with each cost, and a variance for rounding errors. Rounding errors matter when counts
// differ very much in size: then the difference of two covariances has no correct digit left.
// predict limits each covariance to what the two variances allow; otherwise forgetOld would let the
// error of the covariance grow with each interval.
func (f *filter) predict(x []float64) (px []float64, variance, rounding float64) {
	px = f.px[:len(x)]
	for i, row := range f.p[:len(x)] {
		px[i] = dot(row, x)
		variance += float64(px[i] * x[i])
		rounding += float64(row[i] * x[i] * x[i])
	}
	variance = max(variance, 0)
	for i, v := range px {
		px[i] = within(v, float64(f.p[i][i]*variance))
	}
	return px, variance, rounding * f.digits
}

// bound limits each covariance of two costs to what their variances allow.
func (f *filter) bound(n int) {
	for i, row := range f.p[:n] {
		for j, v := range row[:i] {
			row[j] = within(v, float64(row[i]*f.p[j][j]))
			f.p[j][i] = row[j]
		}
	}
}

// within returns v, or the nearest value whose square is at most square.
func within(v, square float64) float64 {
	if v*v <= square {
		return v
	}
	return math.Copysign(math.Sqrt(square), v)
}

// forgetOld lets the errors grow as time passes, at most to the errors of new keys. It sets the
// errors of new keys.
func (f *filter) forgetOld(x []float64, y float64) {
	by := math.Exp(x[background] / f.memory)
	for i, row := range f.p[:len(x)] {
		for j := range row[:len(x)] {
			row[j] *= by
		}
		if i != background && x[i] > 0 {
			first := f.first(i, x[i], y)
			if f.prior[i] == 0 {
				row[i] = first
			}
			f.prior[i] = max(f.prior[i], first)
		}
	}
	for i := range x {
		if v := f.p[i][i]; v > f.prior[i] {
			f.scale(i, len(x), math.Sqrt(f.prior[i]/v))
		}
	}
}

// scale multiplies the standard error of a cost by a factor.
func (f *filter) scale(i, n int, by float64) {
	for j := range n {
		f.p[i][j] *= by
		f.p[j][i] *= by
	}
}

// first returns the variance of the cost of a new key, in seconds², if it has n calls in an
// interval that used y seconds.
func (f *filter) first(place int, n, y float64) float64 {
	if place == background {
		return f.background * f.background
	}
	most := max(y, f.tick) / max(n, 1)
	if place == rejected {
		most = min(most, f.rejected)
	}
	return float64(most * most)
}

// spread returns the variance of what the calls of an interval use, in seconds², if the standard
// deviation of a call equals its cost.
func (f *filter) spread(x []float64, y float64) float64 {
	sum, calls := 0.0, 0.0
	for i := background + 1; i < len(x); i++ {
		calls += x[i]
		sum += float64(x[i] * f.cost[i] * f.cost[i])
	}
	return max(sum, float64(y*y)/max(calls, 1))
}

// disagree restarts the costs after two intervals in a row with e beyond the limit, both above it
// or both below.
func (f *filter) disagree(x []float64, y float64, explained, above bool) {
	switch {
	case explained:
		f.odd = false
	case f.odd && f.above == above:
		f.restart(x, y)
		f.odd = false
	default:
		f.odd, f.above = true, above
	}
}

// restart gives all keys in an interval the errors of new keys.
func (f *filter) restart(x []float64, y float64) {
	for i := range x {
		if x[i] == 0 {
			continue
		}
		for j := range x {
			f.p[i][j], f.p[j][i] = 0, 0
		}
		f.p[i][i] = f.first(i, x[i], y)
	}
}

// project moves the costs to the nearest ones without negative values. Distance is measured by the
// covariance.
func (f *filter) project(n int) {
	for range n {
		worst, least := -1, 0.0
		for i := range n {
			if v := f.p[i][i]; v > 0 && f.cost[i]/math.Sqrt(v) < least {
				worst, least = i, f.cost[i]/math.Sqrt(v)
			}
		}
		if worst < 0 {
			break
		}
		by := f.cost[worst] / f.p[worst][worst]
		for i := range n {
			f.cost[i] -= float64(f.p[worst][i] * by)
		}
		f.cost[worst] = 0
	}
	for i := range n {
		f.cost[i] = max(f.cost[i], 0)
	}
}

func dot(a, b []float64) (sum float64) {
	for i, x := range b {
		sum += float64(a[i] * x)
	}
	return sum
}
