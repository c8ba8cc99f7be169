package drill

import (
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
)

// An arrival is a call that is to be sent.
type arrival struct {
	at     time.Duration // from the start of the run
	class  spillway.Criticality
	client int // who sends it
}

// schedule returns the calls to be sent: a Poisson process with the rate of each phase. Each
// call has a class, at random by the shares of mix, which has one for each class from the lowest
// up, and one of the clients, each as likely. The calls depend on nothing but the arguments, so
// both runs get the same ones; times do not depend on classes, nor either on clients. A process
// without memory may start again at each phase.
func schedule(seed uint64, phases []Phase, mix []float64, clients int) []arrival {
	rng, classes, whose := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	var all []arrival
	for _, p := range phases {
		for t := p.Start + rng.ExpFloat64()/p.OfferedRPS; t < p.End; t += rng.ExpFloat64() / p.OfferedRPS {
			all = append(all, arrival{seconds(t), load.ClassOf(mix, classes.Float64()), whose.IntN(clients)})
		}
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
