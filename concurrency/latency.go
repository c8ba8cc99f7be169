package concurrency

import "time"

// latency is the mean of the last requests, and the least such mean of the last one or two spans, of ten seconds and more.
type latency struct {
	n      int
	mean   float64
	weight float64 // of one request in the mean
	means  minimum
}

// add takes in a latency that may be too short by a stall of this process, in seconds.
func (m *latency) add(at time.Duration, took, stall float64) {
	if m.n < 2*round {
		m.n++
		m.weight = 1 / float64(m.n)
	}
	m.mean += float64((took - m.mean) * m.weight)
	if m.n >= round/2 {
		m.means.add(max(memory, seconds(2*parkTime*m.mean)), at, m.mean+stall)
	}
}

// settle is called after a round without evidence of a queue. If its requests took twice the least, that was of the first that ended
// after a start, which are the quickest. After a round with such evidence, borne or not, it would hide the queue from then on.
func (m *latency) settle(at time.Duration) {
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

// minimum is the least value of the last one to two spans, 0 for none.
type minimum struct {
	now, older float64
	since      time.Duration
}

// add takes in a value, and forgets what is older than two spans.
func (m *minimum) add(span, at time.Duration, v float64) {
	if at-m.since > span || m.now == 0 {
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
