package concurrency

import "math"

// fit is the least-squares line of latency over requests in flight.
type fit struct {
	n            float64
	flight, took float64 // means
	ff, ft, tt   float64 // sums of squares and products about the means
}

func (f *fit) add(flight, took float64) {
	f.n++
	df, dt := flight-f.flight, took-f.took
	f.flight += float64(df / f.n)
	f.took += float64(dt / f.n)
	f.ff += float64(df * (flight - f.flight))
	f.ft += float64(df * (took - f.took))
	f.tt += float64(dt * (took - f.took))
}

// slope returns the seconds that one more request in flight adds to the latency, and that
// slope in standard errors.
func (f *fit) slope() (slope, sigmas float64) {
	if f.n < 3 || f.ff <= 0 {
		return 0, 0
	}
	slope = f.ft / f.ff
	rest := max(f.tt-float64(slope*f.ft), 1e-12*f.tt)
	return slope, slope / math.Sqrt(rest/(f.n-2)/f.ff)
}

// elasticity returns by how many per cent latency grows for each per cent more in
// flight: 0 where requests do not wait for one another, 1 where they only wait.
func (f *fit) elasticity() float64 {
	slope, _ := f.slope()
	return slope * f.flight / f.took
}

// at returns the latency to be expected with so many in flight.
func (f *fit) at(flight float64) float64 {
	slope, _ := f.slope()
	return f.took + float64(slope*(flight-f.flight))
}
