package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// A first probe leaves no more in flight than the limit after it answers in half of the time that requests have, whatever the
// base latency seems to be.
func TestProbeLeavesTimeForDeadlines(t *testing.T) {
	for name, row := range map[string]struct {
		deadlines []float64 // seconds from the start of a request, again and again
		want      float64
	}{
		"none known":           {nil, 40},
		"far away":             {[]float64{3600}, 40},
		"0.3 s":                {[]float64{0.3}, 400 * 0.3 / 3},
		"60 ms":                {[]float64{0.06}, 8},
		"half have passed":     {[]float64{-1, 0.3}, 400 * 0.3 / 3},
		"one in five is short": {[]float64{0.01, 1, 1, 1, 1}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimit(0, false)
			for i := 0; len(row.deadlines) > 0 && i < 20*round; i++ {
				l.start(row.deadlines[i%len(row.deadlines)])
			}
			l.try(100, 400, 40)
			if math.Abs(l.window-row.want) > 0.05*row.want {
				t.Errorf("%.1f are left in flight, want %.1f", l.window, row.want)
			}
		})
	}
}

// A call without a deadline has all the time. After its deadline a call has no time.
func TestTimeToDeadline(t *testing.T) {
	for _, row := range []struct {
		deadline time.Time
		want     float64
	}{
		{time.Time{}, math.Inf(1)},
		{t0.Add(250 * time.Millisecond), 0.25},
		{t0.Add(-time.Second), -1},
	} {
		if got := rest(t0, row.deadline); got != row.want && math.Abs(got-row.want) > 1e-9 {
			t.Errorf("%v: %v s, want %v", row.deadline, got, row.want)
		}
	}
}

// Without a deadline a call is taken, however long even the fastest one takes.
func TestTakeWithoutDeadline(t *testing.T) {
	l := must(t, Config{})
	now := at(60_000)
	l.Ask(now, "a")
	l.fastest.add(memory, l.at, 20)
	if _, ok := l.Take(now, "a", spillway.Critical, now.Add(15*time.Second)); ok {
		t.Error("taken with 15 s left where the fastest call takes 20 s")
	}
	ticket, ok := l.Take(now, "a", spillway.Critical, time.Time{})
	if !ok {
		t.Fatal("not taken without a deadline")
	}
	ticket.Settle(now, spillway.OutcomeServed)
}

// Clients that leave the queue of a pool are no throughput: with fewer in flight fewer leave, which would look as if fewer
// were served.
func TestClientsThatLeaveTheQueue(t *testing.T) {
	l := newLimit(0, false)
	l.working = 50
	for i := range 100 {
		l.advance(time.Duration(i) * 10 * time.Millisecond)
		o := spillway.OutcomeAbandoned
		if i%4 == 0 {
			o = spillway.OutcomeServed
		}
		l.leave(&ending{outcome: o, stood: -memory}, 50)
	}
	if flight, rate := l.measured(); math.Abs(rate-25) > 1 || math.Abs(flight-50) > 1 {
		t.Errorf("%.1f in flight and %.1f per second, want 50 and 25", flight, rate)
	}
}

// Of 60 keys that begin at once most have too few requests to show a queue. All together do.
func TestManyKeysOfOnePool(t *testing.T) {
	for seed := range uint64(4) {
		s := newSite(t, seed, 5)
		key := source{key: "n", perSecond: 1250, service: 20 * ms, names: 60}
		s.run(5*time.Second, key)
		most := 0
		for range 50 {
			s.run(100*ms, key)
			most = max(most, s.queued())
		}
		if shared := s.l.Stats(s.now).Shared; shared.State == Open || shared.BaseLatency > 60*ms || most > 60 {
			t.Errorf("seed %d: %v, base latency %v, and %d wait for the pool", seed, shared.State, shared.BaseLatency, most)
		}
	}
}

// Callers that leave during a probe, and come again later, do not change what was learnt: while nothing is in flight, nothing
// is measured.
func TestCallersLeaveDuringAProbe(t *testing.T) {
	const slots = 8
	for _, during := range []State{Draining, Probing} {
		for _, pause := range []time.Duration{200 * ms, 5 * time.Second} {
			for served := range 12 {
				p := newPool(t, Config{})
				p.run(5*time.Second, slots, 1000)
				before := p.state()
				for i := 0; p.state().State != during && i < 20_000; i++ {
					p.run(ms, slots, 1000)
				}
				if got := p.state().State; got != during {
					t.Fatalf("%v, want %v: there was no probe", got, during)
				}
				p.run(time.Duration(served)*7*ms, slots, 1000)
				p.run(pause, slots, 0)
				most := 0.0
				for range 50 {
					p.run(10*ms, slots, 1000)
					if now := p.state(); now.State == Limiting {
						most = max(most, now.Limit)
					}
				}
				if most == 0 || most > 1.5*before.Limit {
					t.Errorf("%v, pause of %v after %d: the limit rose from %.1f to %.1f", during, pause, served, before.Limit, most)
				}
			}
		}
	}
}

// A process that lacks the processor gets its requests late, and fewer of them. That they do not reach the limit is no reason
// to remove it: ten seconds with the processor are.
func TestStarvedProcessKeepsItsLimit(t *testing.T) {
	p := newPool(t, Config{})
	p.beats = true
	p.run(5*time.Second, 8, 1000)
	before := p.state()
	p.late = 10 * ms
	p.run(time.Minute, 8, 100)
	if got := p.state(); got.State != Limiting || got.Limit > 1.2*before.Limit {
		t.Errorf("%v with a limit of %.1f after a starved minute, before it limiting with %.1f", got.State, got.Limit, before.Limit)
	}
	p.late = 0
	p.run(8*time.Second, 8, 100)
	if got := p.state(); got.State != Limiting {
		t.Errorf("%v after 8 s that were not starved", got.State)
	}
	p.run(5*time.Second, 8, 100)
	if got := p.state(); got.State != Open {
		t.Errorf("%v after 13 s that were not starved, and did not reach the limit", got.State)
	}
}

// Keys that come during a trial and wait for something else are not held back: calls of a route that begins just then, and long polls. In one
// run of four chance decides that the trial is of all keys.
func TestInnocentKeysDuringATrial(t *testing.T) {
	wrong := 0
	for seed := range uint64(8) {
		s := newSite(t, seed, 8, 0)
		over := source{key: "over", perSecond: 1200, service: 20 * ms}
		in := source{key: "in", pool: 1, perSecond: 500, service: 60 * ms, names: 5}
		poll := source{key: "poll", pool: 1, perSecond: 10_000, least: 30 * time.Second, names: 5}
		for i := 0; s.l.Stats(s.now).Tightest().State != Draining && i < 1000; i++ {
			s.run(10*ms, over)
		}
		s.run(100*ms, over, in, poll)
		s.run(5*time.Second, over, in)
		if n := s.rejected["in"] + s.rejected["poll"]; n > 0 {
			t.Logf("seed %d: %d of %d innocent requests were rejected", seed, n, s.sent["in"]+s.sent["poll"])
			wrong++
		}
		if n := s.queued(); n > 48 {
			t.Errorf("seed %d: %d wait for the pool", seed, n)
		}
	}
	if wrong > 2 {
		t.Errorf("innocent requests were rejected in %d of 8 runs", wrong)
	}
}
