package throttle_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/throttle"
)

// probability returns that of a CRITICAL call.
func probability(th *throttle.Throttle, at time.Duration) float64 {
	return th.Stats(t0.Add(at))[spillway.Critical.Index()].Probability
}

func TestAdviceRows(t *testing.T) {
	type told struct {
		at    time.Duration
		ratio float64
	}
	for _, row := range []struct {
		name  string
		told  []told
		calls int // that the throttle has counted as accepted
		at    time.Duration
		want  float64
	}{
		{"nothing is reported", nil, 0, 0, 0},
		{"one answer alone throttles nothing", []told{{0, 0}}, 0, 0, 0},
		{"two answers: the mean of 1, 0.2 and 0.2", []told{{0, 0.2}, {0, 0.2}}, 0, 0, (10 - 2*10*0.4) / 11},
		{"eleven answers of 0: the mean is 1/2048", []told{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}, 0, 0, (10 - 2*10.0/2048) / 11},
		{"an answer without a ratio halves it", []told{{0, 0.2}, {0, 0.2}, {0, 1}}, 0, 0, 0},
		{"half of the answers", []told{{0, 0.2}, {0, 1}, {0, 0.2}, {0, 1}}, 0, 0, 0},
		{"it counts for two minutes", []told{{0, 0}, {0, 0}}, 0, 2*time.Minute - 1, (10 - 2*10*0.25) / 11},
		{"and no longer", []told{{0, 0}, {0, 0}}, 0, 2 * time.Minute, 0},
		{"an answer starts again after that", []told{{0, 0}, {0, 0}, {3 * time.Minute, 0}}, 0, 3 * time.Minute, 0},
		{"calls of one's own take its place", []told{{0, 0}, {0, 0}, {0, 0}}, 5, 0, 0},
		{"few calls of one's own leave the rest", []told{{0, 0}, {0, 0}, {0, 0}}, 2, 0, (10 - 2*(2+8*0.125)) / 11},
		{"enough of them leave nothing", []told{{0, 0}, {0, 0}, {0, 0}}, 10, 0, 0},
		{"nonsense is ignored", []told{{0, -1}, {0, 1.5}, {0, math.NaN()}, {0, math.Inf(1)}, {0, math.Inf(-1)}}, 0, 0, 0},
	} {
		th := must(t, throttle.Config{})
		for range row.calls {
			ticket, err := th.Admit(t0, spillway.Call{})
			if err != nil {
				t.Fatal(err)
			}
			ticket.Settle(t0, spillway.OutcomeServed)
		}
		for _, a := range row.told {
			th.Advise(t0.Add(a.at), spillway.Critical, a.ratio)
		}
		if got := probability(th, row.at); math.Abs(got-row.want) > 1e-9 {
			t.Errorf("%s: probability %.3f, want %.3f", row.name, got, row.want)
		}
	}
}

// A client that calls once a minute is throttled by advice and not by its own measurements; a
// probe that is due must not admit every one of its calls.
func TestAdviceThrottlesRareCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	th := must(t, throttle.Config{Rand: rng.Float64})
	sent := 0
	const calls = 1000
	for i := range calls {
		now := t0.Add(time.Duration(i) * time.Minute)
		ticket, err := th.Admit(now, spillway.Call{})
		if err != nil {
			continue
		}
		sent++
		th.Advise(now, spillway.Critical, 0.1)
		ticket.Settle(now, spillway.OutcomeOverloaded)
	}
	if share := float64(sent) / calls; share < 0.5 || share > 0.85 {
		t.Errorf("%.2f of the calls were sent, want 0.5 to 0.85", share)
	}
}

// Whatever a server reports, only the class that it reports is throttled, never all of its
// calls, and not for longer than its last answer counts.
func TestAdviceOfAHostileServer(t *testing.T) {
	race.SkipOneGoroutine(t)
	rng := rand.New(rand.NewPCG(2, 2))
	th := must(t, throttle.Config{Rand: rng.Float64})
	now := t0
	for range 10000 {
		now = now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
		th.Advise(now, spillway.Critical, float64(rng.IntN(2)))
		for class, s := range th.Stats(now) {
			if most := 10. / 11; s.Probability > most || class != spillway.Critical.Index() && s.Probability > 0 {
				t.Fatalf("class %d is throttled with %v", class, s.Probability)
			}
		}
	}
	if p := probability(th, now.Add(2*time.Minute).Sub(t0)); p > 0 {
		t.Errorf("two minutes after the last answer the probability is %v", p)
	}
	for range 10 { // calls that the server does serve are proof
		ticket, _ := th.Admit(now, spillway.Call{})
		th.Advise(now, spillway.Critical, 0)
		ticket.Settle(now, spillway.OutcomeServed)
	}
	if p := probability(th, now.Sub(t0)); p > 0.5 {
		t.Errorf("with ten calls served the probability is %v", p)
	}
}

func TestAdviseAllocatesNothing(t *testing.T) {
	th := must(t, throttle.Config{})
	if n := testing.AllocsPerRun(100, func() {
		th.Advise(t0, spillway.Critical, 0.1)
		th.Advise(t0, spillway.Critical, 1)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAdvise(f *testing.F) {
	f.Add(0.5, int64(0), int8(0))
	f.Add(math.NaN(), int64(math.MinInt64), int8(7))
	f.Fuzz(func(t *testing.T, ratio float64, at int64, class int8) {
		th := must(t, throttle.Config{})
		now := t0.Add(time.Duration(at))
		c := spillway.Criticality(class)
		th.Advise(t0, c, 0)
		th.Advise(now, c, ratio)
		th.Advise(t0, c, ratio)
		for _, s := range th.Stats(now) {
			if !(s.Probability >= 0 && s.Probability < 1) {
				t.Fatalf("probability %v", s.Probability)
			}
		}
	})
}

// A server that reports its accept ratio in each answer gets as many calls as one that reports
// nothing, also when the load changes: a busy client goes by its own measurements, and advice
// does not disturb them.
func TestAdviceOfABusyClient(t *testing.T) {
	race.SkipOneGoroutine(t)
	const capacity, seconds = 100, 60
	sent := func(advised bool, rates []float64) (all []int) {
		rng := rand.New(rand.NewPCG(1, 1))
		th := must(t, throttle.Config{Rand: rng.Float64})
		at, tokens := 0.0, 0.0
		for i, rate := range rates {
			all = append(all, 0)
			for at < float64(i+1)*seconds {
				gap := rng.ExpFloat64() / rate
				at, tokens = at+gap, min(tokens+gap*capacity, 10)
				now := t0.Add(time.Duration(at * float64(time.Second)))
				ticket, err := th.Admit(now, spillway.Call{})
				if err != nil {
					continue
				}
				outcome := spillway.OutcomeOverloaded
				if tokens >= 1 {
					tokens--
					outcome = spillway.OutcomeServed
				}
				if advised {
					th.Advise(now, spillway.Critical, 0.1)
				}
				ticket.Settle(now, outcome)
				all[i]++
			}
		}
		return all
	}
	for _, rates := range [][]float64{{1000, 5000}, {5000, 1000, 300}, {1000, 250, 4000, 90}, {200, 20_000, 200}} {
		without, with := sent(false, rates), sent(true, rates)
		t.Logf("%v per second: sent %d without advice, %d with it", rates, without, with)
		for i := range rates {
			if with[i] < without[i]*9/10 || with[i] > without[i]*11/10 {
				t.Errorf("%v per second: sent %d without advice, %d with it", rates, without, with)
				break
			}
		}
	}
}
