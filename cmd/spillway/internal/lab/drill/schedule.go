package drill

import (
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/sampling"
)

// schedule returns when each call is to be sent, from the start of the run: a
// Poisson process with the rate of each phase. It depends on nothing but its
// arguments, so that both runs get the same one. A process without memory may
// start again at each phase.
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

// An arrival is a call that is to be sent.
type arrival struct {
	at     time.Duration
	class  spillway.Criticality
	client int // who sends it
}

// deal gives each call a class, at random by the shares of mix, which has one for
// each class from the lowest up, and one of the clients, each as likely. It
// depends on nothing but its arguments; the classes not even on the clients.
func deal(seed uint64, at []time.Duration, mix []float64, clients int) []arrival {
	rng, whose := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	all := make([]arrival, len(at))
	for i := range at {
		all[i] = arrival{at[i], sampling.Class(mix, rng.Float64()), whose.IntN(clients)}
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
