package concurrency

import "time"

// latency is the mean of the last requests, and the least such mean of the last one to
// two memories.
type latency struct {
	n      int
	mean   float64
	weight float64 // of one request in the mean
	means  minimum
	calm   bool // the clock did not stand still when the means were learnt
}

// add takes in a latency. While the clock stands still now and then, all latencies are too short: the least mean is
// that of calm times, unless none is known.
func (m *latency) add(at time.Duration, took float64, calm bool) {
	if m.n < 2*round {
		m.n++
		m.weight = 1 / float64(m.n)
	}
	m.mean += float64((took - m.mean) * m.weight)
	switch {
	case m.n < round/2:
	case calm == m.calm || m.means.value() == 0:
		m.means.add(at, m.mean)
		m.calm = calm
	case calm:
		m.means, m.calm = minimum{now: m.mean, since: at}, true
	}
}

// round is called after a round without evidence of a queue. If its requests took twice the least,
// that was of the first that ended after a start, which are the quickest.
func (m *latency) round(at time.Duration) {
	if m.mean > doubled*m.least() {
		m.means = minimum{now: m.mean, since: at}
	}
}

// least returns 0 while nothing is known.
func (m *latency) least() float64 { return m.means.value() }

// reset forgets everything but one measured latency.
func (m *latency) reset(at time.Duration, base float64) {
	m.n, m.mean, m.means = round/2, base, minimum{now: base, since: at}
}

// minimum is the least value of the last one to two memories, 0 for none.
type minimum struct {
	now, older float64
	since      time.Duration
}

func (m *minimum) add(at time.Duration, v float64) {
	if at-m.since > memory || m.now == 0 {
		m.older, m.now, m.since = m.now, v, at
	}
	if v < m.now { // the builtin min has more cases, and this is for each request
		m.now = v
	}
}

func (m *minimum) value() float64 {
	if m.older == 0 {
		return m.now
	}
	return min(m.now, m.older)
}
