//go:build !race

package balance

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// shares returns how many requests a fast and a slow endpoint get by their load reports, whose
// weights are 4 to 1, where the attempts in flight vary by more than their mean.
func shares(t testing.TB, seed uint64) (fast, slow int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 5))
	a, b := plain(random, 4), plain(random, 4)
	for s, mean := range map[*server]time.Duration{a: 10 * time.Millisecond, b: 40 * time.Millisecond} {
		s.queue = 1000
		s.service = func() time.Duration { return time.Duration(random.ExpFloat64() * float64(mean)) }
	}
	c := Config{LoadReports: &LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond}}
	m := newModel(t, c, a, b)
	m.reports = func(s *server) Load { // too late for a queue of the slow one
		if m.now.Sub(m.start) < 400*time.Millisecond {
			return Load{}
		}
		return Load{CPU: 0.5, QPS: map[*server]float64{a: 400, b: 100}[s]}
	}
	m.load(350, 6*time.Second, spillway.Critical, 0)
	m.run(time.Minute)
	return a.asked, b.asked
}

// TestSharesFollowWeights: an endpoint gets the share of its weight soon after the first reports, and
// not an equal one. BenchmarkFigures has how exact it is.
func TestSharesFollowWeights(t *testing.T) {
	for seed := range uint64(20) {
		fast, slow := shares(t, seed)
		if ratio := float64(fast) / float64(slow); ratio < 2 || ratio > 8 {
			t.Errorf("seed %d: fast to slow is %.2f, want about 4", seed, ratio)
		}
	}
}

// speeds is a minute of requests to two endpoints, of which the first is four times as fast. fixed
// is its weight; 0 means that the endpoints report their load.
func speeds(t testing.TB, fixed float64) *model {
	t.Helper()
	const slots = 8
	random := rand.New(rand.NewPCG(3, 4))
	mean := []time.Duration{5 * time.Millisecond, 20 * time.Millisecond}
	var all []*server
	for _, d := range mean {
		s := plain(random, slots)
		s.queue = 1000
		s.service = func() time.Duration { return time.Duration(random.ExpFloat64() * float64(d)) }
		all = append(all, s)
	}
	c := Config{LoadReports: &LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond}}
	m := newModel(t, c, all...)
	var last [2]struct {
		at     time.Time
		served int
	}
	m.reports = func(s *server) Load {
		i := slices.Index(all, s)
		if fixed > 0 {
			return Load{CPU: 1, QPS: []float64{fixed, 1}[i]}
		}
		l := &last[i]
		elapsed := m.now.Sub(l.at).Seconds()
		qps := float64(s.served-l.served) / elapsed
		l.at, l.served = m.now, s.served
		if elapsed > 10 {
			return Load{}
		}
		return Load{CPU: qps * mean[i].Seconds() / slots, QPS: qps} // as exact as a server knows it
	}
	m.load(1800, 10*time.Second, spillway.Critical, 0) // of 2000
	m.run(10 * time.Second)
	m.from, m.calls, m.ok, m.attempts, m.latencies = m.now, 0, 0, 0, nil
	for _, s := range all {
		s.asked = 0
	}
	m.load(1800, time.Minute, spillway.Critical, 0)
	m.run(2 * time.Minute)
	return m
}

// TestSpeeds: with load reports two endpoints get load in the ratio of their speeds, and requests do
// not wait as with weights that overload one of them. BenchmarkFigures compares the p99 with that of
// the best fixed weights.
func TestSpeeds(t *testing.T) {
	m := speeds(t, 0)
	ratio := float64(m.servers[0].asked) / float64(m.servers[1].asked)
	t.Logf("reports: %.2f to 1, p99 %v", ratio, m.p99())
	if ratio < 3 || ratio > 5.5 {
		t.Errorf("%.2f to 1, want about 4", ratio)
	}
	for _, fixed := range []float64{3, 8} {
		if wrong := speeds(t, fixed).p99(); m.p99() > wrong {
			t.Errorf("p99 %v, with weights of %v to 1 it is %v", m.p99(), fixed, wrong)
		}
	}
}
