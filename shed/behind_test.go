package shed

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/pace"
)

// TestBehind: at a backend that takes 20 ms, a request is behind others if its limit is saturated and
// recent requests waited.
func TestBehind(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		saturated bool
		wait      time.Duration
		want      bool
	}{
		{true, 20 * ms, true},
		{false, 20 * ms, false}, // what waited has gone
		{true, 10 * ms, false},  // chance
		{true, 11 * ms, true},
		{true, 0, false},
		{false, 0, false}, // nothing is known
	} {
		a := arrival{pace: pace.Pace{Free: true, Saturated: row.saturated, Wait: row.wait, Latency: 0.02}}
		if got := a.delayed(); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}
