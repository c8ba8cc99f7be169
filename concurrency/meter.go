package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// meter measures the mean number of requests in flight in a round, and the throughput.
type meter struct {
	at      time.Duration // the time to which area is complete
	working int           // requests in flight that are neither parked nor suspended
	area    float64       // integral of working over time, in requests · seconds

	counts
}

// counts belong to the current round.
type counts struct {
	// begin is when the round began, and beginArea the value of area then.
	begin     time.Duration
	beginArea float64
	// ended is how many requests have ended in the round.
	ended  int
	served int // of these, answered: they give the throughput
	worked int // of these, not failed: they give the base latency
	looked int // value of ended at the last look for evidence
	// missed is the part of area in this round that belongs to requests which ended without an answer.
	missed float64
}

// pass moves the meter to a time.
func (m *meter) pass(at time.Duration) {
	m.area += float64(float64(m.working) * inSeconds(at-m.at))
	m.at = at
}

// renew begins a round.
func (m *meter) renew() { m.counts = counts{begin: m.at, beginArea: m.area} }

// whole reports whether the round has lasted long enough to measure something.
func (m *meter) whole() bool { return m.at-m.begin >= brief }

// end counts a request that has ended.
func (m *meter) end(o spillway.Outcome, began time.Duration) {
	m.ended++
	if !answered(o) {
		m.missed += inSeconds(m.at - max(began, m.begin))
		return
	}
	m.served++
	if o != spillway.OutcomeFailed {
		m.worked++
	}
}

// measured returns the mean number in flight in the round, and its throughput in answers per
// second. Abandoned requests are not part of the throughput: clients that leave a queue would count
// as served.
func (m *meter) measured() (flight, rate float64) {
	took := max(inSeconds(m.at-m.begin), 1e-9)
	return (m.area - m.beginArea) / took, max(0.5, float64(m.served)) / took
}

// answered reports whether a request with that outcome got an answer in time.
func answered(o spillway.Outcome) bool {
	return o != spillway.OutcomeAbandoned && o != spillway.OutcomeTimedOut
}

// each returns for how many seconds of the round an answered request was working, as a mean by
// Little's law.
func (m *meter) each() float64 {
	return (m.area - m.beginArea - m.missed) / float64(max(1, m.served))
}

// seconds returns the duration of s seconds.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// inSeconds is Duration.Seconds without its integer divisions, which cost more than the rest of the
// work for a request.
func inSeconds(d time.Duration) float64 { return float64(float64(d) * 1e-9) }
