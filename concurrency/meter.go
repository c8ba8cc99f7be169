package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// meter measures, by Little's law, the mean in flight of a round, and the throughput.
type meter struct {
	at      time.Duration // latest time
	working int           // requests
	area    float64       // seconds · requests working

	counts
}

// counts belong to a round.
type counts struct {
	begin     time.Duration
	beginArea float64
	ended     int
	served    int // of these, what was answered: throughput
	worked    int // and of these, what did not fail: base latency
	looked    int // ended at the last look for evidence
}

// pass counts time.
func (m *meter) pass(at time.Duration) {
	m.area += float64(float64(m.working) * inSeconds(at-m.at))
	m.at = at
}

// renew begins a round.
func (m *meter) renew() { m.counts = counts{begin: m.at, beginArea: m.area} }

// whole reports whether a round was long enough to tell something.
func (m *meter) whole() bool { return m.at-m.begin >= brief }

// end counts a request.
func (m *meter) end(o spillway.Outcome) {
	m.ended++
	if answered(o) {
		m.served++
		if o != spillway.OutcomeFailed {
			m.worked++
		}
	}
}

// measured returns the mean in flight and the throughput of the round. What was abandoned is no throughput: clients that leave
// a queue would count as if they had been served.
func (m *meter) measured() (flight, rate float64) {
	took := max(inSeconds(m.at-m.begin), 1e-9)
	return (m.area - m.beginArea) / took, max(0.5, float64(m.served)) / took
}

// answered reports whether a request with that outcome got an answer. What was abandoned or missed its deadline is no throughput.
func answered(o spillway.Outcome) bool {
	return o != spillway.OutcomeAbandoned && o != spillway.OutcomeTimedOut
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// inSeconds is Duration.Seconds without its integer divisions, which cost more than the
// rest of a request.
func inSeconds(d time.Duration) float64 { return float64(float64(d) * 1e-9) }
