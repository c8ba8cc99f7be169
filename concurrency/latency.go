package concurrency

import "time"

// latency is the mean of the last requests, and the least such mean of the last one to
// two memories.
type latency struct {
	n, mean float64
	means   minimum
	fastest minimum // of single requests
}

func (m *latency) add(at time.Duration, took float64) {
	m.fastest.add(at, took)
	m.n = min(m.n+1, 2*round)
	m.mean += (took - m.mean) / m.n
	if m.n >= round/2 {
		m.means.add(at, m.mean)
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
	m.now = min(m.now, v)
}

func (m *minimum) value() float64 {
	if m.older == 0 {
		return m.now
	}
	return min(m.now, m.older)
}
