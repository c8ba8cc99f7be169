package main

import (
	"math"
	"math/rand/v2"
)

// gradient2 is Netflix's Gradient2Limit with its defaults, in windows of one
// second (WindowedLimit):
//
//	long     = EWMA of 600 windows of the mean time of a window
//	gradient = 1.5 · long / short, within 0.5 to 1
//	limit    ← 0.8 · limit + 0.2 · (limit · gradient + 4), within 20 to 200
//
// The limit stays while fewer than half of it are in flight. Long shrinks by 5 %
// while it is more than twice short.
//
// Source: github.com/Netflix/concurrency-limits, Gradient2Limit and WindowedLimit.
type gradient2 struct {
	window
	long    ewma
	current float64
}

func newGradient2(*Process) rule {
	return &gradient2{long: ewma{age: 600}, current: 20}
}

func (g *gradient2) limit() int { return int(g.current) }

func (g *gradient2) learn(s sample) {
	mean, most, ok := g.window.add(s)
	if !ok {
		return
	}
	long := g.long.add(mean)
	if long > 2*mean {
		g.long.value *= 0.95
	}
	if float64(most) < g.current/2 {
		return
	}
	gradient := min(1, max(0.5, 1.5*long/mean))
	g.current = min(200, max(20, 0.8*g.current+0.2*(g.current*gradient+4)))
}

// window computes the mean time of at least 10 requests in at least one second.
type window struct {
	until   Time
	n, most int
	sum     float64
}

// add returns the mean time in seconds and the most requests in flight when a window ends.
func (w *window) add(s sample) (mean float64, most int, ok bool) {
	if !s.served || s.took < ms/10 {
		return 0, 0, false
	}
	w.n++
	w.sum += s.took.Seconds()
	w.most = max(w.most, s.inFlight)
	if s.at <= w.until {
		return 0, 0, false
	}
	mean, most, ok = w.sum/float64(w.n), w.most, w.n >= 10
	*w = window{until: s.at + sec}
	return mean, most, ok
}

// vegas is Netflix's VegasLimit with its defaults. After each request,
//
//	queue = limit · (1 - least / took), rounded up
//
// and with l = log10 of the limit, rounded down and at least 1, the limit grows by
// 6·l if queue is l or less, by l if it is below 3·l, and shrinks by l if it is
// above 6·l. It is 1 to 1000. It does not grow while fewer than half of it are in flight.
// Least is the shortest time. It is measured again after 15 to 30 times the limit
// requests.
//
// Source: github.com/Netflix/concurrency-limits, VegasLimit.
type vegas struct {
	current, least float64
	rng            *rand.Rand
	seen           int
	jitter         float64
}

func newVegas(p *Process) rule {
	v := &vegas{current: 20, rng: p.random()}
	v.jitter = 0.5 + v.rng.Float64()/2
	return v
}

func (v *vegas) limit() int { return int(v.current) }

func (v *vegas) learn(s sample) {
	if !s.served {
		return
	}
	v.seen++
	took := s.took.Seconds()
	if v.jitter*30*v.current <= float64(v.seen) {
		v.jitter, v.seen, v.least = 0.5+v.rng.Float64()/2, 0, took
		return
	}
	if v.least == 0 || took < v.least {
		v.least = took
		return
	}
	if 2*float64(s.inFlight) < v.current {
		return
	}
	v.current = min(1000, max(1, v.current+v.step(took)))
}

// step returns the change of the limit after a request.
func (v *vegas) step(took float64) float64 {
	l := log10(v.current)
	queue := math.Ceil(v.current * (1 - v.least/took))
	switch {
	case queue <= l:
		return 6 * l
	case queue < 3*l:
		return l
	case queue > 6*l:
		return -l
	}
	return 0
}

// log10 returns the logarithm of a limit, rounded down and at least 1.
func log10(limit float64) float64 { return max(1, math.Floor(math.Log10(math.Floor(limit)))) }
