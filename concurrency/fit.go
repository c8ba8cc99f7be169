package concurrency

import "math"

// fit is the least-squares line of latency over requests in flight. Its sums are about the
// first point, which costs no division per point and keeps them small.
type fit struct {
	n          float64
	x0, y0     float64 // first point
	x, y       float64 // sums
	xx, xy, yy float64 // of squares and products
}

func (f *fit) add(flight, took float64) {
	if f.n == 0 {
		f.x0, f.y0 = flight, took
	}
	f.n++
	x, y := flight-f.x0, took-f.y0
	f.x += x
	f.y += y
	f.xx += float64(x * x)
	f.xy += float64(x * y)
	f.yy += float64(y * y)
}

// means returns the mean of requests in flight and of latency.
func (f *fit) means() (flight, took float64) { return f.x0 + f.x/f.n, f.y0 + f.y/f.n }

// slope returns the seconds that one more request in flight adds to the latency, and that
// slope in standard errors.
func (f *fit) slope() (slope, sigmas float64) {
	if f.n < 3 {
		return 0, 0
	}
	xx, xy, yy := f.xx-float64(f.x*f.x/f.n), f.xy-float64(f.x*f.y/f.n), f.yy-float64(f.y*f.y/f.n)
	if xx <= 1e-9*f.xx {
		return 0, 0
	}
	slope = xy / xx
	rest := max(yy-float64(xy*slope), 1e-12*yy, 1e-300)
	return slope, slope / math.Sqrt(rest/(f.n-2)/xx)
}

// elasticity returns by how many per cent latency grows for each per cent more in
// flight: 0 where requests do not wait for one another, 1 where they only wait.
func (f *fit) elasticity() float64 {
	slope, _ := f.slope()
	flight, took := f.means()
	return slope * flight / took
}

// at returns the latency to be expected with so many in flight.
func (f *fit) at(flight float64) float64 {
	slope, _ := f.slope()
	mean, took := f.means()
	return took + float64(slope*(flight-mean))
}
