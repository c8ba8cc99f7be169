package main

import (
	"math"
	"slices"
)

// failsafe is the adaptive limiter of failsafe-go with its defaults. A window has
// at least 50 requests and one second. With recent as the smoothed 90th
// percentile of the windows and baseline as its EWMA over 10 windows,
//
//	queue = limit · (1 - baseline / recent), rounded up
//
// and with l = log10 of the limit, rounded down and at least 1, the limit shrinks
// by l if queue is above 6·l. It also shrinks by l if it is reached and, over 50
// windows, throughput falls when more requests are in flight, or times rise
// and throughput does not. It grows by l if queue is below 3·l. It is 1 to 200, and
// at most 5 times the requests in flight.
//
// Source: github.com/failsafe-go/failsafe-go v0.9.8, adaptivelimiter.
type failsafe struct {
	current          float64
	until            Time
	times            []float64
	most             int
	median           []float64 // the last 5 percentiles
	recent, baseline ewma
	throughput, time correlation
}

func newFailsafe(*Process) rule {
	return &failsafe{current: 20, recent: ewma{age: 5}, baseline: ewma{age: 10}}
}

func (f *failsafe) limit() int { return int(f.current) }

func (f *failsafe) learn(s sample) {
	if s.served {
		f.times = append(f.times, s.took.Seconds())
		f.most = max(f.most, s.inFlight)
	}
	if s.at <= f.until || len(f.times) < 50 {
		return
	}
	slices.Sort(f.times)
	least := Time(f.times[0] * float64(sec))
	recent := f.recent.add(f.filter(f.times[len(f.times)*9/10]))
	f.update(recent, s.full)
	f.times, f.most = f.times[:0], 0
	f.until = s.at + min(30*sec, max(2*least, sec))
}

// filter returns the median of the last 5 values, or the value while there are fewer.
func (f *failsafe) filter(x float64) float64 {
	const n = 5
	f.median = append(f.median, x)
	if len(f.median) < n {
		return x
	}
	f.median = f.median[len(f.median)-n:]
	sorted := slices.Clone(f.median)
	slices.Sort(sorted)
	return sorted[n/2]
}

// update changes the limit after a window.
func (f *failsafe) update(recent float64, full bool) {
	baseline := f.baseline.add(recent)
	queue := math.Ceil(f.current * (1 - baseline/recent))
	inFlight := float64(f.most)
	rises, spread := f.throughput.add(inFlight, inFlight/recent)
	slows, _ := f.time.add(inFlight, recent)

	l, next := log10(f.current), f.current
	switch {
	case queue > 6*l, full && (rises < 0 || slows > 0.5 && (rises < 0.3 || spread < 0.2)):
		next -= l
	case queue < 3*l:
		next += l
	}
	if most := 5 * inFlight; next > most {
		if next = most; f.current > most {
			next = f.current - l
		}
	}
	f.current = min(200, max(1, next))
}

// A correlation is computed from the last 50 pairs of values.
type correlation struct{ x, y []float64 }

// add returns the correlation coefficient and the coefficient of variation of y.
// Both are zero for fewer than 10 pairs. The first is zero if x or y varies by less
// than 1 %.
func (c *correlation) add(x, y float64) (coefficient, variation float64) {
	const n = 50
	c.x, c.y = append(c.x, x), append(c.y, y)
	c.x, c.y = c.x[max(0, len(c.x)-n):], c.y[max(0, len(c.y)-n):]
	meanX, devX := moments(c.x)
	meanY, devY := moments(c.y)
	if len(c.x) < 10 {
		return 0, 0
	}
	variation = devY / meanY
	if devX/meanX < 0.01 || variation < 0.01 {
		return 0, variation
	}
	for i := range c.x {
		coefficient += (c.x[i] - meanX) * (c.y[i] - meanY) / float64(len(c.x))
	}
	return coefficient / (devX * devY), variation
}

// moments returns the mean and the standard deviation of values.
func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}
