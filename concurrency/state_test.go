package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Each row continues the one before it: a load for some time, and the state afterwards.
// The pool serves 50 requests per second and slot. Without a queue at most 1 % may be rejected.
func TestStates(t *testing.T) {
	const none = math.MaxInt
	type row struct {
		take         time.Duration
		slots        int
		perSecond    int
		want         State
		least, most  float64 // limit
		mostRejected int
	}
	for name, rows := range map[string][]row{
		"an idle pool is never limited":       {{20 * time.Second, 64, 800, Open, math.Inf(1), math.Inf(1), 0}},
		"a backend without a queue is not":    {{20 * time.Second, none, 5000, Open, math.Inf(1), math.Inf(1), 1000}},
		"nor with ten times the load":         {{5 * time.Second, none, 500, Open, math.Inf(1), math.Inf(1), 0}, {5 * time.Second, none, 5000, Open, math.Inf(1), math.Inf(1), 250}},
		"an overloaded pool is limited":       {{5 * time.Second, 8, 800, Limiting, 9, 24, none}},
		"the limit follows a larger pool":     {{5 * time.Second, 8, 3200, Limiting, 9, 24, none}, {10 * time.Second, 24, 3200, Limiting, 27, 72, none}},
		"the limit follows a smaller pool":    {{5 * time.Second, 24, 3200, Limiting, 27, 72, none}, {10 * time.Second, 8, 3200, Limiting, 9, 24, none}},
		"a limit that is not reached is gone": {{5 * time.Second, 8, 800, Limiting, 9, 24, none}, {25 * time.Second, 8, 100, Open, math.Inf(1), math.Inf(1), none}},
		"and comes back with the overload":    {{5 * time.Second, 8, 800, Limiting, 9, 24, none}, {25 * time.Second, 8, 100, Open, math.Inf(1), math.Inf(1), none}, {5 * time.Second, 8, 800, Limiting, 9, 24, none}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, Config{})
			for i, r := range rows {
				p.run(r.take, r.slots, r.perSecond)
				k := p.state()
				if k.State != r.want || k.Limit < r.least || k.Limit > r.most || p.rejected > r.mostRejected {
					t.Errorf("row %d: %v, limit %.1f, %d rejected; want %v, limit %v to %v", i, k.State, k.Limit, p.rejected, r.want, r.least, r.most)
				}
			}
		})
	}
}

// A key passes through all states in their order, and its numbers explain its limit.
func TestEachTransition(t *testing.T) {
	p := newPool(t, Config{})
	var seen []State
	for range 3000 {
		p.run(time.Millisecond, 8, 800)
		if s := p.state().State; len(seen) == 0 || seen[len(seen)-1] != s {
			seen = append(seen, s)
		}
	}
	if len(seen) < 4 || seen[0] != Open || seen[1] != Draining || seen[2] != Probing || seen[3] != Limiting {
		t.Fatalf("states %v", seen)
	}
	k := p.state()
	if math.Abs(k.Served-k.Throughput*k.BaseLatency.Seconds()) > 0.01 {
		t.Errorf("served %v is not throughput · base latency: %+v", k.Served, k)
	}
	if want := gain*k.Served + k.Throughput*brief.Seconds() + 1; math.Abs(k.Limit-want) > 0.5 {
		t.Errorf("limit %v, want %v: %+v", k.Limit, want, k)
	}
	if k.Wait < 0 || k.Wait > k.Latency || k.Latency == 0 {
		t.Errorf("%+v", k)
	}
}

// A drain stops everything for a second at most, or for four base latencies. In between one starts for each two that end, if something is
// answered in time; and it ends after four times the time in which a queue drains, whatever is left.
func TestDrainCostsASecondOrHalf(t *testing.T) {
	for _, row := range []struct {
		name     string
		outcome  spillway.Outcome
		answered float64 // share of what ends that starts in the third second
	}{
		{"answered", spillway.OutcomeServed, 0.5},
		{"not answered", spillway.OutcomeTimedOut, 0},
	} {
		l := newLimit(0, false)
		l.working, l.base = 5000, 1
		l.try(5000, 1000, 10)
		l.heard = -1
		started := 0
		for l.at < 3*time.Second {
			l.advance(l.at + time.Millisecond)
			l.hear(row.outcome == spillway.OutcomeServed, 1, longest)
			l.leave(&ending{began: 1, outcome: row.outcome, stood: -memory}, 5000)
			l.working--
			l.decide(0, false)
			if l.free(&Config{MinInFlight: 1}) {
				l.working++
				started++
			}
			if l.at < time.Second && started > 0 {
				t.Fatalf("%s: %d started in the first second", row.name, started)
			}
			if l.at == 2*time.Second {
				started = 0
			}
		}
		if l.state != Draining || math.Abs(float64(started)-1000*row.answered) > 10 {
			t.Errorf("%s: %v, %d of 1000 started in the third second", row.name, l.state, started)
		}
		l.advance(20*time.Second + 1)
		if l.state == Draining {
			t.Errorf("%s: still draining after four times the time of the queue", row.name)
		}
	}
}

// A drain ends with what should be in service.
func TestDrainEndsWithWhatIsInService(t *testing.T) {
	l := newLimit(0, false)
	l.working = 128
	l.try(128, 1000, 8)
	for l.state == Draining {
		l.advance(l.at + time.Millisecond)
		l.leave(&ending{began: 1, outcome: spillway.OutcomeServed, stood: -memory}, 128)
		l.working--
		l.decide(0, false)
	}
	if left := l.limit(&Config{MinInFlight: 1}); l.state != Probing || left != 8 {
		t.Errorf("%v with %v in flight, want 8", l.state, left)
	}
}

// While heartbeats come late, and answers as much, that is no queue, and a limit stays about
// what it was.
func TestStarvation(t *testing.T) {
	for _, limited := range []bool{false, true} {
		p := newPool(t, Config{})
		p.beats = true
		load, slots := 300, 64
		if limited {
			load, slots = 800, 8
		}
		p.run(5*time.Second, slots, load)
		before := p.l.Stats(p.now).Tightest()
		p.late, p.service = 100*time.Millisecond, 120*time.Millisecond
		p.run(8*time.Second, slots, load)
		during := p.l.Stats(p.now).Tightest()
		p.late, p.service = 0, 20*time.Millisecond
		p.run(2*time.Second, slots, load)
		after := p.l.Stats(p.now).Tightest()
		for when, k := range map[string]KeyStats{"while starved": during, "afterwards": after} {
			if k.Limiting() != before.Limiting() || limited && (k.Limit > 3*before.Limit || k.Limit < before.Limit/3) {
				t.Errorf("limited %v: %v at %.1f %s, was %v at %.1f", limited, k.State, k.Limit, when, before.State, before.Limit)
			}
		}
	}
}

// A process that stops for an hour finds what it has left.
func TestStoppedProcess(t *testing.T) {
	p := newPool(t, Config{})
	p.beats = true
	p.run(5*time.Second, 8, 800)
	before := p.l.Stats(p.now).Tightest()
	p.now = p.now.Add(time.Hour)
	if got := p.l.Stats(p.now).Tightest(); got.State != before.State || got.Limit != before.Limit || got.InFlight != before.InFlight {
		t.Errorf("%+v, was %+v", got, before)
	}
}

// Without heartbeats, and after Rest, no silence counts as starvation.
func TestRest(t *testing.T) {
	l := must(t, Config{})
	for i, step := range []struct {
		do   func()
		want bool
	}{
		{func() { l.Ask(at(0), "a") }, false},
		{func() { l.Ask(at(1000), "a") }, false},
		{func() { l.Beat(at(1000), false) }, false},
		{func() { l.Ask(at(1012), "a") }, false},
		{func() { l.Ask(at(1040), "a") }, true},
		{func() { l.Beat(at(1050), false) }, false},
		{func() { l.Rest() }, false},
		{func() { l.Ask(at(9000), "a") }, false},
		{func() { l.Beat(at(9000), false) }, false},
	} {
		step.do()
		if got := l.Stats(t0).Starved; got != step.want {
			t.Errorf("step %d: starved %v, want %v", i, got, step.want)
		}
	}
}

// Requests whose clients left count neither for throughput nor for latency.
func TestAbandoned(t *testing.T) {
	l := must(t, Config{})
	for i := range 110 {
		ticket := l.Enter(at(float64(10*i)), call("a"))
		ticket.Settle(at(float64(10*i+5)), spillway.OutcomeAbandoned)
	}
	p := l.Ask(at(1100), "a")
	if p.Latency != 0 || p.Fastest != 0 || p.Throughput > 2 || p.Abandoned < 0.9 || p.Abandoned > 1 {
		t.Errorf("%+v", p)
	}
}

// The state has a name, whatever its value.
func TestStateNames(t *testing.T) {
	for state, want := range map[State]string{Open: "open", Draining: "draining", Probing: "probing", Limiting: "limiting", 9: "invalid"} {
		if got := state.String(); got != want {
			t.Errorf("State(%d) is %q, want %q", state, got, want)
		}
	}
}

// The first latencies of a step of load belong to a queue that grows, so that the first limit may be too high. The trials of a minute
// find the base latency nevertheless, and with it a limit of about 1.5 times the slots.
func TestBaseLatencyAfterAStep(t *testing.T) {
	for _, slots := range []int{1, 2, 8} {
		for _, times := range []int{2, 5, 10} {
			p := newPool(t, Config{})
			p.fixed = true
			p.run(70*time.Second, slots, times*slots*50)
			for range 200 { // a trial may measure it again just now
				if p.state().State != Limiting {
					p.run(10*time.Millisecond, slots, times*slots*50)
				}
			}
			s := p.state()
			if least, most := float64(slots), 3*float64(slots)+3; s.State != Limiting || s.Limit < least || s.Limit > most {
				t.Errorf("%d slots, %d times the capacity: %v, base latency %v, limit %.1f, want limiting, %v to %v", slots, times, s.State, s.BaseLatency, s.Limit, least, most)
			}
		}
	}
}

// Streams whose clients leave after a while have no latency. While that of a few is known, nothing can have become slower.
func TestNoLatencyIsKnown(t *testing.T) {
	l := newLimit(0, false)
	l.working = 20
	l.leave(&ending{outcome: spillway.OutcomeServed, began: -30 * time.Second, stood: -memory}, 20)
	for range 4 * round {
		l.advance(l.at + time.Second)
		l.hear(true, 1, 1) // the first part of a stream
		l.leave(&ending{outcome: spillway.OutcomeAbandoned, began: l.at - 20*time.Second, stood: -memory}, 20)
		if l.decide(0, false) {
			t.Fatalf("%d streams that ended are evidence of a queue", l.ended)
		}
	}
}
