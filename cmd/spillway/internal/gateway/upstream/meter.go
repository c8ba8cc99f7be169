package upstream

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
)

// A Meter counts attempts by their outcome, with the latency from when an attempt is sent
// until the headers of its answer arrive. An attempt without an answer counts with its
// duration.
type Meter struct {
	Counts tuner.Meter
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	m.Counts.Begin()
	answer, err := m.next.RoundTrip(r)
	m.Counts.End(time.Since(start), endingOf(answer, err, start))
	return answer, err
}

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
