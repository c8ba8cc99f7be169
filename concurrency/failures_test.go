package concurrency

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// A backend without a queue fails at once for a second of every five, in 1 ms in place of about 40.
// Neither the failures nor the return to 40 ms are a queue: at most 1 % is rejected.
func TestFastFailuresAreNoQueue(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(5) {
		l, rng, rejected := must(t, Config{}), rand.New(rand.NewPCG(seed, 7)), 0
		type request struct {
			ends   time.Time
			ticket spillway.Ticket
			o      spillway.Outcome
		}
		var flying []request
		for ms := range 30_000 {
			now := t0.Add(time.Duration(ms) * time.Millisecond)
			left := flying[:0]
			for _, r := range flying {
				if r.ends.After(now) {
					left = append(left, r)
					continue
				}
				r.ticket.Settle(now, r.o)
			}
			flying = left
			for rng.Float64() < 2.0/3 { // 2 on average
				took, o := time.Duration(40e6*rng.ExpFloat64()), spillway.OutcomeServed
				if ms%5000 >= 4000 {
					took, o = time.Millisecond, spillway.OutcomeFailed
				}
				ticket, err := l.Admit(now, call("a"))
				if err != nil {
					rejected++
					continue
				}
				flying = append(flying, request{now.Add(took), ticket, o})
			}
		}
		if rejected > 600 {
			t.Errorf("seed %d: %d of about 60,000 rejected", seed, rejected)
		}
	}
}
