//go:build !race

// The model runs on one goroutine: there is nothing for the race detector to find.

package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestPartialOverload: one of four endpoints has a quarter of its capacity, as few
// places or as a slow processor, and rejects with and without hints.
func TestPartialOverload(t *testing.T) {
	for _, hint := range []time.Duration{0, 500 * time.Millisecond, time.Second, time.Minute} {
		for _, slow := range []bool{false, true} {
			var quiet time.Duration
			for _, sick := range []bool{false, true} {
				random := rand.New(rand.NewPCG(3, 4))
				var all []*server
				for range 4 {
					s := plain(random, 10)
					s.hint = hint
					all = append(all, s)
				}
				switch {
				case sick && slow:
					all[0].service = func() time.Duration { return time.Duration((0.5 + random.Float64()) * float64(80*time.Millisecond)) }
				case sick:
					all[0].slots, all[0].queue = 2, 2
				}
				m := newModel(t, Config{}, all...)
				m.load(1400, time.Minute, spillway.Critical, 0)
				m.run(2 * time.Minute)
				t.Logf("hint %v, slow %v, sick %v: %v", hint, slow, sick, m)
				if !sick {
					quiet = m.p99()
				}
				if m.success() < 0.995 || m.amplification() > 1.1 || m.p99() > quiet+20*time.Millisecond {
					t.Errorf("hint %v, slow %v, sick %v: %v (p99 %v without overload)", hint, slow, sick, m, quiet)
				}
			}
		}
	}
}

// TestOneRejects: one of two, four or ten endpoints rejects everything.
func TestOneRejects(t *testing.T) {
	for _, n := range []int{2, 4, 10} {
		for _, hint := range []time.Duration{0, time.Second, time.Hour} {
			random := rand.New(rand.NewPCG(3, 4))
			var all []*server
			for range n {
				all = append(all, plain(random, 10))
			}
			all[0].hint = hint
			all[0].rejects = func(spillway.Criticality) bool { return true }
			m := newModel(t, Config{}, all...)
			m.load(350*float64(n-1), time.Minute, spillway.Critical, 0)
			m.run(2 * time.Minute)
			t.Logf("1 of %d, hint %v: %v", n, hint, m)
			if m.success() < 0.99 || m.amplification() > 1.02 {
				t.Errorf("1 of %d, hint %v: %v", n, hint, m)
			}
		}
	}
}

// TestAllReject: if all endpoints reject, they get equal load, and requests have more than one
// attempt only within the budget. When the endpoints recover, the load returns evenly.
func TestAllReject(t *testing.T) {
	for _, hint := range []time.Duration{0, 2 * time.Second, time.Hour} {
		random := rand.New(rand.NewPCG(3, 4))
		down := true
		var all []*server
		for range 4 {
			s := plain(random, 10)
			s.hint = hint
			s.rejects = func(spillway.Criticality) bool { return down }
			all = append(all, s)
		}
		m := newModel(t, Config{}, all...)
		m.load(1000, 3*time.Minute, spillway.Critical, 0)
		m.run(time.Minute)
		t.Logf("hint %v: %v", hint, m)
		if m.amplification() > 1.11 {
			t.Errorf("hint %v: %v", hint, m)
		}
		down = false
		m.run(30 * time.Second) // to recover
		m.from, m.calls, m.ok, m.attempts, m.latencies = m.now, 0, 0, 0, nil
		for _, s := range all {
			s.asked = 0
		}
		m.run(time.Minute)
		t.Logf("hint %v, afterwards: %v", hint, m)
		for _, s := range all {
			if share := float64(s.asked) / float64(m.calls); m.success() < 0.995 || share < 0.2 || share > 0.3 {
				t.Errorf("hint %v, afterwards: %v", hint, m)
				break
			}
		}
	}
}

// TestOnePathRejects: a path that all endpoints always reject, with the longest hints, takes
// nothing from the others.
func TestOnePathRejects(t *testing.T) {
	for _, hint := range []time.Duration{0, time.Second, time.Hour} {
		random := rand.New(rand.NewPCG(3, 4))
		var all []*server
		for range 4 {
			all = append(all, plain(random, 10))
		}
		m := newModel(t, Config{Outliers: new(OutlierDetection)}, all...)
		m.rejectAll, m.hintAll = func(path int) bool { return path == 1 }, hint
		m.from = m.now.Add(time.Hour) // those of the bad path are not counted
		m.load(900, time.Minute, spillway.Critical, 1)
		m.run(time.Second)
		m.from = m.now
		good := newModel(t, Config{}, all...) // to count
		good.set, good.endpoints = m.set, m.endpoints
		served := 0
		for range 5900 {
			m.run(10 * time.Millisecond)
			p := m.set.Pick(m.now, spillway.Critical, nil)
			if all[p.Index].busy < all[p.Index].slots {
				served++
			}
			m.set.Answered(m.now, &p, Answer{Outcome: spillway.OutcomeServed})
			m.endpoints[p.Index].End()
		}
		if served < 5890 {
			t.Errorf("hint %v: %d of 5900 requests of the good path could be served", hint, served)
		}
	}
}

// TestFlapping: an endpoint that alternately serves and rejects, a second each, costs few
// requests.
func TestFlapping(t *testing.T) {
	for _, hint := range []time.Duration{0, time.Second} {
		random := rand.New(rand.NewPCG(3, 4))
		var all []*server
		for range 4 {
			all = append(all, plain(random, 10))
		}
		m := newModel(t, Config{}, all...)
		all[0].hint = hint
		all[0].rejects = func(spillway.Criticality) bool { return int(m.now.Sub(m.start).Seconds())%2 == 1 }
		m.load(1000, time.Minute, spillway.Critical, 0)
		m.run(2 * time.Minute)
		t.Logf("hint %v: %v", hint, m)
		if m.success() < 0.995 || m.amplification() > 1.1 {
			t.Errorf("hint %v: %v", hint, m)
		}
	}
}

// TestSilence: an endpoint that takes requests and never answers gets few of them.
func TestSilence(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []Config{{}, {Outliers: new(OutlierDetection)}} {
		var all []*server
		for range 4 {
			all = append(all, plain(random, 10))
		}
		all[0].hangs = true
		m := newModel(t, c, all...)
		m.load(1000, time.Minute, spillway.Critical, 0)
		m.run(2 * time.Minute)
		t.Logf("outliers %v: %v", c.Outliers != nil, m)
		if m.success() < 0.99 {
			t.Errorf("outliers %v: %v", c.Outliers != nil, m)
		}
	}
}

// TestClassesAreApart: an endpoint that rejects the lower class with hints still gets its
// share of the higher one.
func TestClassesAreApart(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var all []*server
	for range 2 {
		all = append(all, plain(random, 10))
	}
	all[0].hint = time.Hour
	all[0].rejects = func(c spillway.Criticality) bool { return c == spillway.Sheddable }
	m := newModel(t, Config{}, all...)
	m.load(100, time.Minute, spillway.Sheddable, 0)
	m.run(time.Second)
	if s := all[0].asked; s == 0 || all[0].served > 0 {
		t.Fatalf("asked %d, served %d", s, all[0].served)
	}
	m.load(400, 30*time.Second, spillway.Critical, 0)
	m.run(time.Minute)
	if share := float64(all[0].served) / (400 * 30); share < 0.4 {
		t.Errorf("the endpoint served %.2f of the critical requests: %v", share, m)
	}
}

// TestWeights: two endpoints of different speed get their shares by their reports, and
// lies are bounded.
func TestWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	fast, slow := plain(random, 16), plain(random, 4)
	c := Config{LoadReports: &LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond}}
	m := newModel(t, c, fast, slow)
	m.reports = func(s *server) Load {
		return Load{CPU: float64(s.busy+1) / float64(s.slots), QPS: float64(s.busy+1) * 50}
	}
	m.load(700, time.Minute, spillway.Critical, 0)
	m.run(2 * time.Minute)
	t.Logf("%v", m)
	if ratio := float64(fast.asked) / float64(slow.asked); ratio < 3.6 || ratio > 4.4 || m.success() < 0.995 {
		t.Errorf("fast to slow is %.2f: %v", ratio, m)
	}
	for _, lie := range []Load{
		{CPU: 1e-300, QPS: 1e300}, {CPU: math.SmallestNonzeroFloat64, QPS: math.MaxFloat64}, {CPU: 1e-9, QPS: 1e9},
		{CPU: math.NaN(), QPS: 1}, {CPU: 1, QPS: math.Inf(1)}, {CPU: -1, QPS: -1}, {CPU: 1, QPS: 1, EPS: math.NaN()},
	} {
		var all []*server
		for range 4 {
			all = append(all, plain(random, 100))
		}
		m := newModel(t, c, all...)
		m.reports = func(s *server) Load {
			if s == all[0] {
				return lie
			}
			return Load{CPU: 0.5, QPS: 100}
		}
		m.load(200, 30*time.Second, spillway.Critical, 0)
		m.run(time.Minute)
		share := float64(all[0].asked) / float64(m.calls)
		t.Logf("%+v gets %.3f", lie, share)
		if share > maxRelativeWeight/(maxRelativeWeight+3.0)+0.02 || share < 0.025 || m.success() < 0.999 {
			t.Errorf("%+v gets %.3f: %v", lie, share, m)
		}
	}
}

// TestReportsExpire: a weight ends with its reports.
func TestReportsExpire(t *testing.T) {
	c := Config{LoadReports: &LoadReports{WeightExpirationPeriod: 10 * time.Second}}
	m := newModel(t, c, new(server), new(server), new(server))
	report := func() {
		m.set.Report(m.now, m.endpoints[0], Load{CPU: 0.5, QPS: 100})
		m.set.Report(m.now, m.endpoints[1], Load{CPU: 0.5, QPS: 300})
	}
	weights := func() string {
		p := m.set.Pick(m.now, spillway.Critical, nil)
		m.endpoints[p.Index].End()
		return fmt.Sprintf("%.2f %.2f %.2f", m.set.Weight(0), m.set.Weight(1), m.set.Weight(2))
	}
	for _, row := range []struct {
		after  time.Duration
		report bool
		want   string
	}{
		{0, true, "1.00 1.00 1.00"}, // blackout
		{5 * time.Second, true, "1.00 1.00 1.00"},
		{6 * time.Second, true, "0.50 1.50 1.00"}, // the third has the mean
		{9 * time.Second, false, "0.50 1.50 1.00"},
		{2 * time.Second, false, "1.00 1.00 1.00"},
		{time.Second, true, "1.00 1.00 1.00"}, // blackout again
	} {
		m.now = m.now.Add(row.after)
		if row.report {
			report()
		}
		if got := weights(); got != row.want {
			t.Errorf("at %v: %s, want %s", m.now.Sub(m.start), got, row.want)
		}
	}
}

// TestSlowStart: an endpoint that is added to a cluster that is overloaded gets its
// share step by step, and is not drowned.
func TestSlowStart(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var all []*server
	for range 4 {
		all = append(all, plain(random, 10))
	}
	c := Config{SlowStart: &SlowStart{Window: 10 * time.Second}}
	m := newModel(t, c, all...)
	m.set.SetHealthy(m.now, m.endpoints[0], false)
	m.load(1800, 40*time.Second, spillway.Critical, 0) // three have 1500
	m.run(10 * time.Second)
	if all[0].asked > 0 {
		t.Fatalf("an unhealthy endpoint was asked %d times", all[0].asked)
	}
	m.set.SetHealthy(m.now, m.endpoints[0], true)
	var shares []float64
	for range 12 {
		before, all0 := m.calls, all[0].asked
		m.run(time.Second)
		shares = append(shares, float64(all[0].asked-all0)/float64(m.calls-before))
	}
	t.Logf("shares %.3f", shares)
	if shares[0] > 0.08 || shares[4] > 0.2 || shares[11] < 0.2 || all[0].rejected > all[0].asked/10 {
		t.Errorf("shares %.3f, rejected %d of %d", shares, all[0].rejected, all[0].asked)
	}
}

// TestHintsOfBusyEndpoints: if all endpoints are nearly full and reject now and then, a hint
// of one of them does not move its load to the others. An endpoint that begins to reject
// everything is skipped.
func TestHintsOfBusyEndpoints(t *testing.T) {
	var without float64
	for _, hint := range []time.Duration{0, time.Second} {
		random := rand.New(rand.NewPCG(3, 4))
		var all []*server
		for range 4 {
			s := plain(random, 10)
			s.hint, s.queue = hint, 4
			all = append(all, s)
		}
		m := newModel(t, Config{}, all...)
		m.load(1850, time.Minute, spillway.Critical, 0) // of 2000
		m.run(2 * time.Minute)
		t.Logf("hint %v: %v", hint, m)
		if hint == 0 {
			without = m.success()
		} else if m.success() < without-0.005 {
			t.Errorf("hint %v: %v; without %.4f", hint, m, without)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	var all []*server
	for range 4 {
		all = append(all, plain(random, 10))
	}
	all[0].hint = time.Second
	m := newModel(t, Config{}, all...)
	all[0].rejects = func(spillway.Criticality) bool { return m.now.Sub(m.start) > 20*time.Second }
	m.load(1200, 40*time.Second, spillway.Critical, 0)
	m.run(time.Minute)
	t.Logf("one begins to reject: %v", m)
	if m.success() < 0.995 || all[0].rejected > 500 {
		t.Errorf("one begins to reject: %v", m)
	}
}

// TestHintsOfBursts: one of four endpoints has a fifth of its places, and the calls of a proxy that
// waits for a processor arrive together. Then endpoints that are well reject some, too. That
// they send hints changes nothing: their load cannot be moved to anybody.
func TestHintsOfBursts(t *testing.T) {
	for seed := range uint64(4) {
		var without *model
		for _, hint := range []time.Duration{0, time.Second, time.Minute} {
			random := rand.New(rand.NewPCG(seed, 4))
			var all []*server
			for range 4 {
				s := plain(random, 10)
				s.hint, s.queue = hint, 0
				all = append(all, s)
			}
			all[0].slots = 2
			m := newModel(t, Config{}, all...)
			for range 240 {
				m.load(1100, 230*time.Millisecond, spillway.Critical, 0)
				m.run(230 * time.Millisecond)
				m.load(5000, 5*time.Millisecond, spillway.Critical, 0)
				m.run(20 * time.Millisecond)
			}
			m.run(time.Minute)
			t.Logf("seed %d, hint %v: %v", seed, hint, m)
			if hint == 0 {
				without = m
			} else if m.String() != without.String() {
				t.Errorf("seed %d, hint %v: %v; without %v", seed, hint, m, without)
			}
		}
	}
}

// TestSlowEndpointsRecover: an endpoint that was slow gets its share back, whatever it was,
// and one slow answer takes nothing from it.
func TestSlowEndpointsRecover(t *testing.T) {
	for _, slower := range []time.Duration{4, 100} {
		random := rand.New(rand.NewPCG(3, 4))
		var all []*server
		for range 4 {
			all = append(all, plain(random, 100))
		}
		m := newModel(t, Config{}, all...)
		quick := all[0].service
		all[0].service = func() time.Duration { return slower * quick() }
		m.load(400, 3*time.Minute, spillway.Critical, 0)
		m.run(time.Minute)
		share := func(d time.Duration) float64 {
			calls, asked := m.calls, all[0].asked
			m.run(d)
			return float64(all[0].asked-asked) / float64(m.calls-calls)
		}
		slow := share(time.Minute)
		all[0].service = quick
		m.run(30 * time.Second)
		again := share(10 * time.Second)
		t.Logf("%d times as slow: %.4f of the requests; 30 s after: %.4f", slower, slow, again)
		if slow > 0.01 || again < 0.2 {
			t.Errorf("%d times as slow: %.4f of the requests; 30 s after: %.4f", slower, slow, again)
		}
		once := true
		all[0].service = func() time.Duration {
			if once {
				once = false
				return time.Second
			}
			return quick()
		}
		if after := share(10 * time.Second); after < 0.2 || once {
			t.Errorf("after one slow answer: %.4f of the requests", after)
		}
	}
}
