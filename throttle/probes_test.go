package throttle_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// TestProbesAreCounted: while a backend accepts nothing, each call that is let through is a
// probe, once in ProbeInterval.
func TestProbesAreCounted(t *testing.T) {
	r, err := throttle.New(throttle.Config{ProbeInterval: time.Second, Rand: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	admitted := func(calls int) (n uint64) {
		for range calls {
			now = now.Add(10 * time.Millisecond)
			if ticket, err := r.Admit(now, spillway.Call{}); err == nil {
				ticket.Settle(now, spillway.OutcomeOverloaded)
				n++
			}
		}
		return n
	}
	probes := func() uint64 { return r.Stats(now)[spillway.Critical.Index()].ProbesTotal }
	admitted(6000)
	before := probes()
	if n := admitted(1000); n < 9 || n > 11 || probes()-before != n {
		t.Errorf("in ten seconds %d calls are let through, and %d are counted as probes", n, probes()-before)
	}
}
