package concurrency

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Denormal numbers are slow to compute with, and a share that only falls would stay one.
func TestSharesEndAtZero(t *testing.T) {
	l, now := must(t, Config{}), t0
	k := &l.keys[l.slot(now, "key")]
	for i := range 60_000 {
		ticket, err := l.Admit(now, spillway.Call{Key: "key"})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(10 * time.Millisecond)
		outcome := spillway.OutcomeServed
		if i == 0 {
			outcome = spillway.OutcomeAbandoned
		}
		ticket.Settle(now, outcome)
	}
	for _, limit := range []*limit{l.all, k.limit} {
		if limit.abandoned != 0 {
			t.Errorf("abandoned %g", limit.abandoned)
		}
	}
}
