package throttle_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// served returns from which second on the share is served in each second.
func served(seconds []second, share float64) (from int) {
	for i, s := range seconds {
		if s.served < share*s.offered {
			from = i + 1
		}
	}
	return from
}

// TestSparseClients has many clients of few calls: 250 of 2 per second, and 1,000 of half a call,
// during an overload of ten times the capacity for two minutes, and an outage of five minutes.
func TestSparseClients(t *testing.T) {
	race.SkipOneGoroutine(t)
	const load, end = 10, 140
	for _, row := range []struct {
		clients    int
		k          float64
		sent       float64 // capacities, at most, in the overload
		overload   int     // seconds until 95 % are served after it
		dead       float64 // share of the calls that a dead backend gets, at most
		afterwards int     // seconds until 95 % are served after the outage
	}{
		{250, 2, 2.06, 5, 0.3, 8},
		{250, 1.1, 1.2, 5, 0.3, 8},
		{1000, 2, 2.2, 6, 0.2, 35},
		{1000, 1.1, 1.4, 5, 0.2, 35},
	} {
		overload := scenario{
			seed: 1, k: row.k, clients: row.clients, latency: 5 * time.Millisecond, length: (end + 15) * time.Second,
			load: func(at time.Duration) float64 {
				if at >= 20*time.Second && at < end*time.Second {
					return load
				}
				return 0.5
			},
		}.run(t)
		steady := sum(overload[60:end])
		if sent := steady.sent / (end - 60) / capacity; sent > row.sent || steady.served < 0.99*(end-60)*capacity {
			t.Errorf("%+v: %.3f capacities are sent, and %.0f calls served", row, sent, steady.served)
		}
		if from := served(overload[end:], 0.95); from > row.overload {
			t.Errorf("%+v: 95 %% are served from second %d after the overload", row, from)
		}
		outage := scenario{
			seed: 1, k: row.k, clients: row.clients, latency: 5 * time.Millisecond, length: 400 * time.Second, load: constant(0.5),
			down: func(at time.Duration) bool { return at >= 60*time.Second && at < 360*time.Second },
		}.run(t)
		if dead := sum(outage[60:360]); dead.sent > row.dead*dead.offered {
			t.Errorf("%+v: a dead backend gets %.3f of the calls", row, dead.sent/dead.offered)
		}
		if from := served(outage[360:], 0.95); from > row.afterwards {
			t.Errorf("%+v: 95 %% are served from second %d after the outage", row, from)
		}
	}
}
