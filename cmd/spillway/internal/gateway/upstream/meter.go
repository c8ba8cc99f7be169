package upstream

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
)

// A Meter counts attempts by their outcome, with the latency from when an attempt is sent
// until the headers of its answer arrive. An attempt without an answer counts with its
// duration.
type Meter struct {
	Counts  tuner.Meter
	next    http.RoundTripper
	waiting atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	m.waiting.Add(1)
	answer, err := m.next.RoundTrip(r)
	m.waiting.Add(-1)
	m.Counts.End(time.Since(start), endingOf(answer, err, start))
	return answer, err
}

// Waiting returns the number of attempts that wait for the headers of their answer.
func (m *Meter) Waiting() int64 { return m.waiting.Load() }

// endingOf returns the outcome of an attempt. A rejection of one customer says nothing about
// the load.
func endingOf(answer *http.Response, err error, now time.Time) tuner.Ending {
	if err != nil { // its duration is enough
		return tuner.Failed
	}
	switch read(answer, now).outcome {
	case spillway.OutcomeOverloaded:
		return tuner.Rejected
	case spillway.OutcomeOverQuota:
		return tuner.Failed
	default:
		return tuner.Served
	}
}
