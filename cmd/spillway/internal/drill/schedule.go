package drill

import (
	"math/rand/v2"
	"time"
)

// schedule returns when each call is to be sent, from the start of the run: a
// Poisson process with the rate of each phase. It depends on nothing but its
// arguments, so that both runs get the same one. A process without memory may
// start anew at each phase.
func schedule(seed uint64, phases []Phase) []time.Duration {
	rng := rand.New(rand.NewPCG(seed, 0))
	var at []time.Duration
	for _, p := range phases {
		for t := p.Start + rng.ExpFloat64()/p.OfferedRPS; t < p.End; t += rng.ExpFloat64() / p.OfferedRPS {
			at = append(at, seconds(t))
		}
	}
	return at
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
