package concurrency

import "time"

// latency is the mean latency of the last 64 requests or so, in seconds, and the least such mean of
// the last one to two spans. A span is ten seconds, or longer where requests take seconds.
type latency struct {
	n      int     // requests in the mean, at most 64
	mean   float64 // in seconds
	weight float64 // weight of the latest request in the mean: 1/n
	means  minimum
}

// add records that a request took so many seconds. The clock stood still for up to stall seconds
// meanwhile, so took may be too short by that, and the least mean is raised by it.
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

// settle corrects the least mean after a round without evidence of a queue. If the mean is now more
// than twice the least, the least came from the first requests that ended after a start, which are
// the quickest. settle must not be called after a round with evidence of a queue, nor for ten
// seconds after a queue for which the deadlines of callers left time: it would hide the queue.
func (m *latency) settle(at time.Duration) {
	if m.mean > doubled*m.least() {
		m.means = minimum{now: m.mean, since: at}
	}
}

// least returns the least recent mean in seconds, 0 while nothing is known.
func (m *latency) least() float64 { return m.means.value() }

// reset forgets everything but one measured latency, in seconds.
func (m *latency) reset(at time.Duration, base float64) {
	m.n, m.mean, m.means = round/2, base, minimum{now: base, since: at}
}

// minimum is the least value of the last one to two spans of time. The value 0 means none.
type minimum struct {
	// now and older are the least values of this span, which began at since, and of the one before.
	now, older float64
	since      time.Duration
}

// add records the value v, and forgets values that are older than two spans.
func (m *minimum) add(span, at time.Duration, v float64) {
	if at-m.since > span || m.now == 0 {
		m.older, m.now, m.since = m.now, v, at
	}
	if v < m.now { // faster than the builtin min, and this runs for each request
		m.now = v
	}
}

// value returns the least recent value, 0 for none.
func (m *minimum) value() float64 {
	if m.older == 0 {
		return m.now
	}
	return min(m.now, m.older)
}
