package concurrency

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// A backend hangs for 3 s at 0.8 times its capacity. What waited for it counts all the time. The queue that is left drains by itself, and its
// clients did not say that they would not wait: nothing is rejected.
func TestAfterAHang(t *testing.T) {
	for _, slots := range []int{16, 64} {
		p := newPool(t, Config{})
		load := slots * 40
		p.run(5*time.Second, slots, load)
		p.run(3*time.Second, 0, load)
		if k := p.state(); k.InFlight != len(p.queue)+len(p.busy) || k.Parked > 0 {
			t.Errorf("%d slots: %d in flight and %d parked after 3 s, want %d and none", slots, k.InFlight, k.Parked, len(p.queue)+len(p.busy))
		}
		p.run(16*time.Second, slots, load)
		if k := p.state(); k.InFlight > 4*slots || p.rejected > 0 {
			t.Errorf("%d slots, 16 s after the hang: %d in flight, %d were rejected", slots, k.InFlight, p.rejected)
		}
	}
}

// The same with deadlines, which all that waited have missed: only a trickle is let in until something is answered in time.
func TestAfterAHangWithDeadlines(t *testing.T) {
	for _, slots := range []int{16, 64} {
		p := newPool(t, Config{})
		load := slots * 40
		p.deaf = 250 * time.Millisecond
		p.run(5*time.Second, slots, load)
		p.run(3*time.Second, 0, load)
		p.run(4500*time.Millisecond, slots, load)
		p.rejected = 0
		p.run(5*time.Second, slots, load)
		if k := p.state(); k.InFlight > 2*slots || p.rejected > 5*load/50 {
			t.Errorf("%d slots, 5 s after the hang: %d in flight, %d of %d were rejected", slots, k.InFlight, p.rejected, 5*load)
		}
	}
}

// A backend that stands still during each probe does not show a longer base latency.
func TestProbeOfAStandstill(t *testing.T) {
	for seed := range uint64(5) {
		p := newPool(t, Config{})
		p.rng = rand.New(rand.NewPCG(seed, 4))
		p.run(5*time.Second, 8, 1000)
		var most float64
		for probes, was := 0, Open; probes < 5; {
			p.run(time.Millisecond, 8, 1000)
			k := p.state()
			if k.State == Limiting {
				most = max(most, k.Limit)
			}
			if k.State == Probing && was != Probing {
				probes++
				for i := range p.busy {
					p.busy[i].ends = p.busy[i].ends.Add(300 * time.Millisecond)
				}
			}
			was = k.State
		}
		p.run(time.Second, 8, 1000)
		if k := p.state(); !k.Limiting() || most > 3*16 {
			t.Errorf("seed %d: %v, a limit of up to %.1f, where 16 is right", seed, k.State, most)
		}
	}
}

// A backend that stands still in a drain has a queue all the same.
func TestDrainOfAStandstill(t *testing.T) {
	p := newPool(t, Config{})
	until := func(done func() bool) {
		for i := 0; !done(); i++ {
			if p.run(time.Millisecond, 8, 4000); i > 5000 {
				t.Fatalf("%+v", p.state())
			}
		}
	}
	until(func() bool { return p.state().State == Draining })
	before := p.state().InFlight
	until(func() bool { return p.state().InFlight < before/3 })
	for i := range p.busy {
		p.busy[i].ends = p.busy[i].ends.Add(300 * time.Millisecond)
	}
	p.run(290*time.Millisecond, 8, 4000)
	if k := p.state(); k.State != Draining || before < 2*round {
		t.Errorf("%v with %d in flight, %d before; want draining", k.State, k.InFlight, before)
	}
}

// What was in flight while the backend hung ends in the order of its arrival, where there is no queue
// either: if it took latencies for evidence, a backend that becomes slower would be limited.
func TestSlowerIsNoQueue(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		p := newPool(t, Config{})
		p.fixed = fixed
		p.run(5*time.Second, 10_000, 1000)
		p.service *= 25
		for range 1000 {
			p.run(10*time.Millisecond, 10_000, 1000)
			if k := p.state(); k.Limiting() {
				t.Fatalf("fixed %v: %v after %v", fixed, k.State, p.now.Sub(t0))
			}
		}
	}
}

// Requests are parked when later ones end before them, or after a long time.
func TestParkedWhenOvertaken(t *testing.T) {
	for _, row := range []struct {
		quick  bool // other requests end meanwhile
		after  time.Duration
		parked int
	}{
		{true, 500 * time.Millisecond, 0}, {true, 3 * time.Second, 100},
		{false, 3 * time.Second, 0}, {false, 9 * time.Second, 0}, {false, 22 * time.Second, 100},
	} {
		p := newPool(t, Config{})
		p.run(2*time.Second, 64, 500)
		p.run(200*time.Millisecond, 64, 0)
		for range 100 {
			p.l.Enter(p.now, call("a")) // hangs
		}
		rate := 0
		if row.quick {
			rate = 500
		}
		p.run(row.after, 64, rate)
		p.l.Ask(p.now, "a")
		if k := p.state(); k.Parked != row.parked {
			t.Errorf("%+v: %d parked", row, k.Parked)
		}
	}
}

// A probe in which nothing ends tells nothing: the base latency is what it was.
func TestProbeWithoutAnAnswer(t *testing.T) {
	for _, first := range []bool{false, true} {
		l := newLimit(0, false)
		l.at, l.begin = 20*time.Second, 20*time.Second
		l.latency.reset(l.at, 0.02)
		l.base, l.rate, l.state = 0.02, 400, Limiting
		if first {
			l.state = Open
		}
		l.try(10, 400, 8)
		l.measure()
		l.working = 8
		for range 1000 {
			if l.advance(l.at + time.Millisecond); l.state != Probing {
				break
			}
		}
		if l.state != Limiting && !first || l.base != 0.02 || l.rate != 400 {
			t.Errorf("first %v: %v, base latency %v, throughput %v", first, l.state, l.base, l.rate)
		}
	}
}

// Requests that begin in the instant in which those before them begin to count as older: the clock stands still where a
// process is stopped, so that many begin in one instant.
func TestOneInstant(t *testing.T) {
	l := must(t, Config{})
	for range round {
		a := l.Enter(t0, call("a"))
		a.Settle(t0.Add(10*time.Millisecond), spillway.OutcomeServed)
	}
	var all []spillway.Ticket
	for range round {
		all = append(all, l.Enter(at(1100), call("a")))
	}
	for range round { // each finds one more that has overtaken older ones
		all = append(all, l.Enter(at(3000), call("a")))
		all[0].Settle(at(3000), spillway.OutcomeServed)
		all = all[1:]
	}
	for i := range all {
		all[i].Settle(at(3000), spillway.OutcomeServed)
	}
	for i := range 4 {
		ticket := l.Enter(at(5000+float64(i)*2000), call("a"))
		if working, parked := l.Working(); working != 1 || parked != 0 {
			t.Fatalf("%d working and %d parked, want 1 and 0", working, parked)
		}
		ticket.Settle(at(5001+float64(i)*2000), spillway.OutcomeServed)
	}
}
