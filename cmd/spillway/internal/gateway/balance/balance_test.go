package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

var t0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func set(t testing.TB, c Config, n int) (*Set, []*Endpoint) {
	t.Helper()
	var all []*Endpoint
	for range n {
		all = append(all, NewEndpoint())
	}
	return New(c, t0, all), all
}

// picks returns how often each of n endpoints is picked at a time, ended at once.
func picks(s *Set, all []*Endpoint, now time.Time, class spillway.Criticality, tried ...*Endpoint) []int { //nolint:unparam // reads like Pick
	counts := make([]int, len(all))
	for range 1000 {
		p := s.Pick(now, class, tried)
		s.Answered(now, &p, Answer{Outcome: spillway.OutcomeServed, Class: class})
		all[p.Index].End()
		counts[p.Index]++
	}
	return counts
}

// TestOutliers goes through the life of an endpoint that fails: ejected after five
// failures in a row, for 30 s and then for 60 s, and never with another one.
func TestOutliers(t *testing.T) {
	s, all := set(t, Config{Outliers: new(OutlierDetection)}, 4)
	answer := func(now time.Time, i int, failed bool) {
		p := Pick{Index: i}
		s.Answered(now, &p, Answer{Outcome: spillway.OutcomeFailed, Failed: failed})
	}
	fail := func(now time.Time, i, n int) {
		for range n {
			answer(now, i, true)
		}
	}
	fail(t0, 0, 4)
	answer(t0, 0, false)
	fail(t0, 0, 4)
	if st := s.State(t0, all[0]); st != Available {
		t.Fatalf("after four failures in a row: %v", st)
	}
	fail(t0, 0, 1)
	fail(t0, 1, 9) // one of four is the most
	if a, b := s.State(t0, all[0]), s.State(t0, all[1]); a != Ejected || b != Available {
		t.Fatalf("%v, %v", a, b)
	}
	if n := picks(s, all, t0, spillway.Critical); n[0] != 0 {
		t.Errorf("the ejected endpoint is picked: %v", n)
	}
	now := t0.Add(30 * time.Second)
	if st := s.State(now, all[0]); st != Available {
		t.Errorf("after 30 s: %v", st)
	}
	fail(now, 0, 5)
	if a, b := s.State(now.Add(59*time.Second), all[0]), s.State(now.Add(60*time.Second), all[0]); a != Ejected || b != Available {
		t.Errorf("the second ejection: %v after 59 s, %v after 60 s", a, b)
	}
}

// TestSuccessRates: one of six endpoints fails a fifth of the time.
func TestSuccessRates(t *testing.T) {
	s, all := set(t, Config{Outliers: &OutlierDetection{Consecutive5xx: -1}}, 6)
	now := t0
	for i := range 6 * 400 {
		now = now.Add(5 * time.Millisecond)
		p := Pick{Index: i % 6}
		s.Answered(now, &p, Answer{Outcome: spillway.OutcomeFailed, Failed: i%6 == 2 && i/6%5 == 0})
	}
	for i, x := range all {
		if ejected := s.State(now, x) == Ejected; ejected != (i == 2) {
			t.Errorf("endpoint %d is ejected: %v", i, ejected)
		}
	}
}

// TestPanic: with hints from one or two of four, they are skipped; with three, none is.
func TestPanic(t *testing.T) {
	for out := range 5 {
		for _, threshold := range []float64{0, -1, 100} {
			s, all := set(t, Config{PanicThreshold: threshold}, 4)
			for i := range out {
				p := Pick{Index: i}
				s.Answered(t0, &p, Answer{Outcome: spillway.OutcomeOverloaded, Class: spillway.Critical, Hint: 10 * time.Second})
			}
			skipped := 0
			counts := picks(s, all, t0.Add(time.Second), spillway.Critical)
			for i := range out {
				if counts[i] == 0 {
					skipped++
				}
			}
			want := map[float64][]int{0: {0, 1, 2, 0, 0}, -1: {0, 1, 2, 3, 0}, 100: {0, 0, 0, 0, 0}}[threshold][out]
			if skipped != want {
				t.Errorf("threshold %v, %d of 4 asked to be left alone: %d skipped, want %d: %v", threshold, out, skipped, want, counts)
			}
			if wait := s.Wait(t0.Add(time.Second), spillway.Critical); (wait == 9*time.Second) != (out == 4) || out < 4 && wait != 0 {
				t.Errorf("%d of 4: wait %v", out, wait)
			}
			if counts := picks(s, all, t0.Add(10*time.Second), spillway.Critical); slices.Min(counts) < 150 {
				t.Errorf("afterwards: %v", counts)
			}
		}
	}
}

// TestRanks: tried endpoints, unreachable ones and unhealthy ones are used when there
// are no better ones.
func TestRanks(t *testing.T) {
	s, all := set(t, Config{}, 4)
	s.SetHealthy(t0, all[0], false)
	p := Pick{Index: 1}
	s.Answered(t0, &p, Answer{Outcome: spillway.OutcomeOverloaded, Unreachable: true})
	for _, row := range []struct {
		tried []*Endpoint
		want  string
	}{
		{nil, "--xx"},
		{all[2:3], "---x"},
		{all[2:4], "-x--"},
		{all[1:4], "-xxx"}, // all were tried but the one that is unhealthy
	} {
		got := ""
		for _, n := range picks(s, all, t0, spillway.Critical, row.tried...) {
			got += map[bool]string{true: "x", false: "-"}[n > 0]
		}
		if got != row.want {
			t.Errorf("tried %d: %s, want %s", len(row.tried), got, row.want)
		}
	}
	for _, x := range all {
		s.SetHealthy(t0, x, false)
	}
	if n := picks(s, all, t0.Add(time.Minute), spillway.Critical); slices.Min(n) == 0 || !s.Panics(t0) {
		t.Errorf("all unhealthy: %v", n)
	}
	for _, x := range all[1:] {
		s.SetHealthy(t0, x, true)
	}
	if n := picks(s, all, t0.Add(time.Minute), spillway.Critical); n[0] != 0 || slices.Min(n[1:]) == 0 || s.Panics(t0) {
		t.Errorf("all healthy but one: %v", n)
	}
}

// TestRandomPicks has many endpoints in all states, and expects each pick to be of the best
// rank that a naive reading of the rules finds.
func TestRandomPicks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	slow := []*SlowStart{nil, {Window: time.Minute}}
	for round := range 3000 {
		n := 1 + r.IntN(7)
		c := Config{Rand: r.Float64, LeastBusy: r.IntN(4) == 0, Outliers: new(OutlierDetection), SlowStart: slow[r.IntN(2)]}
		s, all := set(t, c, n)
		now := t0
		for range r.IntN(20) {
			i := r.IntN(n)
			now = now.Add(time.Duration(r.IntN(500)) * time.Millisecond)
			p := Pick{Index: i}
			switch r.IntN(4) {
			case 0:
				s.SetHealthy(now, all[i], r.IntN(2) == 0)
			case 1:
				s.Answered(now, &p, Answer{Outcome: spillway.OutcomeFailed, Unreachable: true, Failed: true})
			case 2:
				s.Answered(now, &p, Answer{Outcome: spillway.OutcomeOverloaded, Class: spillway.SheddablePlus, Hint: time.Duration(r.IntN(10)) * time.Second})
			case 3:
				s.Ramp(now, all[i])
			}
		}
		var tried []*Endpoint
		for _, x := range all {
			if r.IntN(3) == 0 {
				tried = append(tried, x)
			}
		}
		class := []spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus, spillway.Critical}[r.IntN(3)]
		best := naive(s, all, now, class, tried)
		p := s.Pick(now, class, tried)
		if n > 1 && !slices.Contains(best, p.Index) {
			t.Fatalf("round %d: picked %d of %d, the rules want one of %v", round, p.Index, n, best)
		}
	}
}

// naive returns which endpoints may be picked.
func naive(_ *Set, all []*Endpoint, now time.Time, class spillway.Criticality, tried []*Endpoint) []int {
	at := int64(now.Sub(t0))
	soft, available, healthy := 0, 0, 0
	for _, x := range all {
		switch {
		case x.unhealthy.Load():
			continue
		case x.unreachable.Load() > at:
		case x.leftOut[class.Index()].Load() > at || x.ejected.Load() > at:
			soft++
		default:
			available++
		}
		healthy++
	}
	byRank := make(map[int][]int)
	least := 9
	for i, x := range all {
		rank := 0
		switch isSoft := x.leftOut[class.Index()].Load() > at || x.ejected.Load() > at; {
		case x.unhealthy.Load() && healthy > 0:
			rank = 3
		case slices.Contains(tried, x):
			rank = 2
		case !x.unhealthy.Load() && (x.unreachable.Load() > at || isSoft && 2*available >= available+soft):
			rank = 1
		}
		byRank[rank] = append(byRank[rank], i)
		least = min(least, rank)
	}
	return byRank[least]
}

// TestSubset: in a round each endpoint is in one subset; over all clients the endpoints
// have about the same number of them, whatever their order in the file.
func TestSubset(t *testing.T) {
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("10.0.%d.%d:80", i/100, i%100))
	}
	shuffled := slices.Clone(all)
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	counts := make(map[string]int)
	for client := range uint64(300) { // of ten a round has 30
		a, b := Subset(all, client, 10), Subset(shuffled, client, 10)
		if len(a) != 10 || !slices.Equal(a, b) {
			t.Fatalf("client %d: %v and %v", client, a, b)
		}
		for _, x := range a {
			counts[x]++
		}
	}
	for _, x := range all {
		if counts[x] != 10 {
			t.Errorf("%s has %d clients", x, counts[x])
		}
	}
	if a, b := Subset(all, 0, 10), Subset(all, 30, 10); slices.Equal(a, b) {
		t.Error("two rounds have the same order")
	}
	for _, size := range []int{-1, 0, 300, 1000} {
		if got := Subset(all, 3, size); len(got) != 300 {
			t.Errorf("size %d: %d endpoints", size, len(got))
		}
	}
	if got := Subset(all[:7], ^uint64(0), 3); len(got) != 3 {
		t.Errorf("the last client: %v", got)
	}
}

// TestAtOnce has goroutines pick, answer, report and change health, for the race
// detector; afterwards nothing is in flight.
func TestAtOnce(t *testing.T) {
	s, all := set(t, Config{
		Outliers: new(OutlierDetection), LoadReports: &LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond}, SlowStart: &SlowStart{Window: time.Second},
	}, 5)
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for i := range 20_000 {
				now := t0.Add(time.Duration(i) * time.Millisecond)
				p := s.Pick(now, spillway.Critical, nil)
				x := all[p.Index]
				s.Answered(now, &p, Answer{Outcome: spillway.Outcome(1 + r.IntN(5)), Class: spillway.Critical, Failed: r.IntN(3) == 0, Hint: time.Duration(r.IntN(50)) * time.Millisecond})
				if s.Wants(now, x) {
					s.Report(now, x, Load{CPU: r.Float64(), QPS: 100 * r.Float64()})
				}
				if i%100 == 0 {
					s.SetHealthy(now, x, r.IntN(2) == 0)
				}
				x.End()
			}
		})
	}
	running.Wait()
	for i, x := range all {
		if x.Busy() != 0 {
			t.Errorf("endpoint %d has %d in flight", i, x.Busy())
		}
		s.SetHealthy(t0, x, true)
	}
	if n := s.sick.Load(); n != 0 {
		t.Errorf("%d are unhealthy, none is", n)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, c := range map[string]Config{"plain": {}, "weights": {LoadReports: &LoadReports{BlackoutPeriod: -1}}, "least busy": {LeastBusy: true}} {
		s, all := set(t, c, 10)
		s.Report(t0, all[0], Load{CPU: 1, QPS: 1})
		s.Report(t0, all[1], Load{CPU: 1, QPS: 2})
		tried := all[3:4]
		if n := testing.AllocsPerRun(1000, func() {
			p := s.Pick(t0, spillway.Critical, tried)
			s.Answered(t0, &p, Answer{Outcome: spillway.OutcomeOverloaded, Class: spillway.Critical})
			all[p.Index].End()
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{2, 10, 100, 1000} {
		for name, c := range map[string]Config{"equal": {}, "weights": {LoadReports: &LoadReports{BlackoutPeriod: -1}}} {
			b.Run(fmt.Sprint(name, "-", n), func(b *testing.B) {
				s, all := set(b, c, n)
				for i, x := range all {
					s.Report(t0, x, Load{CPU: 1, QPS: float64(1 + i%3)})
				}
				b.ReportAllocs()
				for b.Loop() {
					p := s.Pick(t0, spillway.Critical, nil)
					s.Answered(t0, &p, Answer{Outcome: spillway.OutcomeServed})
					all[p.Index].End()
				}
			})
		}
	}
}
