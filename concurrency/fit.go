package concurrency

import "math"

// fit is the least-squares line of latency, in seconds, over requests in flight. It adds up the
// differences of each point from the first point: these sums stay small, and a new point needs no
// division.
type fit struct {
	n          float64 // number of points
	x0, y0     float64 // first point: requests in flight, latency
	x, y       float64 // sums of the differences
	xx, xy, yy float64 // sums of their squares and products
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

// means returns the mean number of requests in flight and the mean latency in seconds.
func (f *fit) means() (flight, took float64) { return f.x0 + f.x/f.n, f.y0 + f.y/f.n }

// slope returns the seconds of latency that one more request in flight adds, and the same as a
// multiple of its standard error. Both are 0 if there are too few points.
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

// elasticity returns by how many per cent latency grows if 1 % more are in flight: 0 where requests
// do not wait for one another, 1 where they do nothing but wait.
func (f *fit) elasticity() float64 {
	slope, _ := f.slope()
	flight, took := f.means()
	return slope * flight / took
}

// at returns the latency in seconds that the line predicts for a number of requests in flight.
func (f *fit) at(flight float64) float64 {
	slope, _ := f.slope()
	mean, took := f.means()
	return took + float64(slope*(flight-mean))
}
