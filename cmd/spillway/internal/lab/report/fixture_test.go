package report

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
)

// fixture returns an invented result that adds up: each call ends in one way,
// and the counts are the sums of the series. It is always the same.
func fixture() *drill.Result {
	r := &drill.Result{
		Started:     time.Date(2026, 3, 4, 3, 7, 0, 0, time.UTC),
		Machine:     drill.Machine{GoVersion: "go1.26.8", OS: "linux", Arch: "amd64", CPUs: 2, CallerCPUs: 1},
		CapacityRPS: 612.4,
		Settings: drill.Settings{
			Overload: 10, Calm: 0.5, DeadlineMS: 100, ServiceMS: 1.5, Seed: 1, MaxInFlight: 30, Connections: 260, Wire: "GET over HTTP/1.1",
			MaxInFlightRule: "half of capacity × deadline",
			Caller:          "invented: 3 attempts at once, no protection",
			Protected:       "invented: adaptive throttle, in-flight limit, retry budget",
		},
		Headline: []string{"Without: 8/s.", "With: 560/s."},
		Checks: []drill.Check{
			{Name: "goodput", Pass: true, Got: new(0.93), Want: 0.9, Text: "goodput during the overload is 93 % of capacity, at least 90 % was promised"},
			{Name: "p99", Pass: true, Got: new(61.0), Want: 100, Text: "p99 of answers is within the deadline"},
			{Name: "recovery", Pass: false, Got: new(1.25), Want: 1, Text: "back 1.25 s after the overload, at most 1 s was promised"},
		},
	}
	for i, load := range []float64{0.5, 10, 0.5} {
		name := []string{drill.PhaseCalm, drill.PhaseStep, drill.PhaseRecovery}[i]
		start, end := []float64{0, 4, 12}[i], []float64{4, 12, 18}[i]
		r.Settings.Phases = append(r.Settings.Phases, drill.Phase{Name: name, Start: start, End: end, Load: load, OfferedRPS: load * r.CapacityRPS})
	}
	r.Without = fixtureRun(r, naive)
	r.With = fixtureRun(r, protected)
	r.With.RecoverS = new(1.25)
	return r
}

// A slot is what happened to the calls of one slot of the series.
type slot struct {
	drill.Counts
	p50, p99 *float64
	inFlight int
	budget   float64
}

// naive answers some calls at the start of the overload and none after that.
func naive(rng *rand.Rand, t float64, phase string, offered, room int) slot {
	s := slot{Counts: drill.Counts{Offered: offered, Attempts: offered}, p50: new(3 + rng.Float64()), p99: new(9 + 5*rng.Float64()), inFlight: 2 + rng.IntN(4)}
	if phase == drill.PhaseCalm {
		s.Goodput = offered
		return s
	}
	s.Attempts = 3*offered - offered/10
	s.Retries = s.Attempts - offered
	s.Goodput = min(offered, room*int(100*math.Exp(-3*(t-4)))/100)
	s.Late = min(offered-s.Goodput, room/4)
	s.RejectedByBackend = (offered - s.Goodput - s.Late) / 5
	s.Failed = (offered - s.Goodput - s.Late) / 8
	if phase == drill.PhaseStep {
		s.DroppedSends = offered / 8
	}
	s.p50, s.p99, s.inFlight = new(140+20*rng.Float64()), new(190+40*rng.Float64()), 900+rng.IntN(200)
	if t > 6 && s.Late == 0 || int(10*t)%4 == 0 {
		s.p50, s.p99 = nil, nil
	}
	return s
}

// protected serves as many calls as there is room for and rejects the rest.
func protected(rng *rand.Rand, t float64, phase string, offered, room int) slot {
	s := slot{Counts: drill.Counts{Offered: offered}, p50: new(3 + rng.Float64()), p99: new(9 + 5*rng.Float64()), inFlight: 2 + rng.IntN(4), budget: 1}
	s.Goodput = min(offered, room*93/100)
	over := offered - s.Goodput
	s.RejectedThrottle, s.RejectedInFlight = over*6/10, over*3/10
	s.RejectedLocal = s.RejectedThrottle + s.RejectedInFlight
	s.RejectedByBackend = over / 20
	s.Retries = s.RejectedByBackend / 2
	s.Attempts = s.Goodput + s.RejectedByBackend + s.Retries
	if phase == drill.PhaseStep {
		s.p50, s.p99, s.inFlight, s.budget = new(40+5*rng.Float64()), new(55+10*rng.Float64()), 30, 0.2+0.1*rng.Float64()
	}
	return s
}

func fixtureRun(r *drill.Result, model func(rng *rand.Rand, t float64, phase string, offered, room int) slot) *drill.Run {
	const stepS = 0.1
	rng := rand.New(rand.NewPCG(1, 2))
	run := &drill.Run{LatenessP50MS: 0.04, LatenessP99MS: 1.3, Seconds: 18, Series: drill.Series{StepS: stepS}}
	for _, p := range r.Settings.Phases {
		count := drill.NamedCounts{Name: p.Name}
		for t := p.Start; t < p.End-1e-9; t += stepS {
			s := model(rng, t, p.Name, int(p.OfferedRPS*stepS*(0.9+0.2*rng.Float64())), int(r.CapacityRPS*stepS))
			s.TimedOut = s.Offered - s.Goodput - s.Late - s.RejectedLocal - s.RejectedByBackend - s.Failed - s.DroppedSends
			run.Series.T = append(run.Series.T, math.Round(10*t)/10)
			appendSlot(&run.Series, s)
			add(&count.Counts, s.Counts)
		}
		run.Phases = append(run.Phases, count)
	}
	run.Counts = run.Phases[1].Counts
	run.Classes = fixtureClasses(run.Counts)
	run.GoodputRPS = float64(run.Goodput) / 8
	run.GoodputRatio = run.GoodputRPS / r.CapacityRPS
	run.AttemptsPerCall = float64(run.Attempts) / float64(run.Attempts-run.Retries)
	if run.Samples = run.Goodput; run.Samples >= drill.MinSamplesP99 {
		run.P99MS = new(61.25)
	}
	run.P50MS = new(42.125)
	return run
}

// fixtureClasses divides the offered calls of c among four classes equally. The highest
// class has all the goodput.
func fixtureClasses(c drill.Counts) []drill.NamedCounts {
	var all []drill.NamedCounts
	for i, name := range []string{"CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"} {
		k := drill.NamedCounts{Name: name, Counts: drill.Counts{Offered: c.Offered / 4}}
		if i == 0 {
			k.Goodput = c.Goodput
		}
		k.RejectedByBackend = min(c.RejectedByBackend/4, k.Offered-k.Goodput)
		k.RejectedLocal = min(c.RejectedLocal/4, k.Offered-k.Goodput-k.RejectedByBackend)
		k.TimedOut = k.Offered - k.Goodput - k.Rejected()
		all = append(all, k)
	}
	return all
}

func appendSlot(s *drill.Series, v slot) {
	for _, c := range []struct {
		column *[]int
		value  int
	}{
		{&s.Offered, v.Offered}, {&s.Goodput, v.Goodput}, {&s.Late, v.Late}, {&s.RejectedLocal, v.RejectedLocal},
		{&s.RejectedThrottle, v.RejectedThrottle}, {&s.RejectedInFlight, v.RejectedInFlight},
		{&s.RejectedByBackend, v.RejectedByBackend}, {&s.TimedOut, v.TimedOut}, {&s.Failed, v.Failed},
		{&s.DroppedSends, v.DroppedSends}, {&s.Attempts, v.Attempts}, {&s.Retries, v.Retries}, {&s.InFlight, v.inFlight},
	} {
		*c.column = append(*c.column, c.value)
	}
	s.P50MS, s.P99MS = append(s.P50MS, v.p50), append(s.P99MS, v.p99)
	if v.budget > 0 {
		s.Budget, s.Limit = append(s.Budget, v.budget), append(s.Limit, 30)
	}
}

func add(sum *drill.Counts, c drill.Counts) {
	sum.Offered += c.Offered
	sum.Goodput += c.Goodput
	sum.Late += c.Late
	sum.RejectedLocal += c.RejectedLocal
	sum.RejectedByBackend += c.RejectedByBackend
	sum.TimedOut += c.TimedOut
	sum.Failed += c.Failed
	sum.DroppedSends += c.DroppedSends
	sum.RejectedThrottle += c.RejectedThrottle
	sum.RejectedInFlight += c.RejectedInFlight
	sum.Attempts += c.Attempts
	sum.Retries += c.Retries
}
