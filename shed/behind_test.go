package shed

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestBehind: a request is behind others at a backend with 4 in service, each 20 ms, whose limit
// is 8, if requests waited there lately and as many as are in service are in flight.
func TestBehind(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		inFlight   float64
		wait       time.Duration
		throughput float64
		want       bool
	}{
		{8, 20 * ms, 200, true},
		{4, 20 * ms, 200, true},
		{3, 20 * ms, 200, false}, // what waited has gone
		{8, 10 * ms, 200, false}, // chance
		{8, 11 * ms, 200, true},
		{0, 0, 200, false},
		{0, 20 * ms, 0, false}, // nothing is known
	} {
		a := arrival{pace: spillway.Pace{Free: true, Left: 8 - row.inFlight, Wait: row.wait, Latency: 0.02, Throughput: row.throughput}}
		if got := a.delayed(); got != row.want {
			t.Errorf("%v in flight, a wait of %v lately, %v per second: %v", row.inFlight, row.wait, row.throughput, got)
		}
	}
}
