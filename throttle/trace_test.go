package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/golden"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/throttle"
)

// A stage is some time of a trace.
type stage struct {
	takes     time.Duration
	rates     [3]int  // calls per second to each route
	accepts   int     // calls per second that the backend accepts
	broken    bool    // the first route accepts nothing
	hangs     bool    // what the backend does not accept times out, after a second or ten
	advice    float64 // told after each call that is rejected, unless 0
	limited   bool    // the limit in flight is reached all the time
	back      time.Duration
	update    *throttle.Config
	sheddable bool // every second call is of a low class
}

// traces are loads whose every decision is recorded.
func traces() map[string][]stage {
	const s = time.Second
	return map[string][]stage{
		"overload and recovery": {
			{takes: 4 * s, rates: [3]int{100, 50}, accepts: 1000}, {takes: 20 * s, rates: [3]int{300, 100}, accepts: 80},
			{takes: 12 * s, rates: [3]int{100, 50}, accepts: 1000},
		},
		"outage": {
			{takes: 5 * s, rates: [3]int{100}, accepts: 1000}, {takes: 20 * s, rates: [3]int{100}}, {takes: 15 * s, rates: [3]int{100}, accepts: 1000},
		},
		"clock set back in an outage": {
			{takes: 5 * s, rates: [3]int{100}, accepts: 1000}, {takes: 8 * s, rates: [3]int{100}},
			{takes: 8 * s, rates: [3]int{100}, back: 5 * s}, {takes: 8 * s, rates: [3]int{100}, accepts: 1000, back: s / 2},
		},
		"one route is broken": {
			{takes: 5 * s, rates: [3]int{50, 50, 2}, accepts: 1000}, {takes: 15 * s, rates: [3]int{50, 50, 2}, accepts: 1000, broken: true},
			{takes: 90 * s, rates: [3]int{10, 10, 2}, accepts: 1000},
		},
		"timeouts": {
			{takes: 5 * s, rates: [3]int{50, 5}, accepts: 1000}, {takes: 25 * s, rates: [3]int{50, 5}, accepts: 30, hangs: true},
			{takes: 20 * s, rates: [3]int{50, 5}, accepts: 30, hangs: true, limited: true}, {takes: 10 * s, rates: [3]int{50, 5}, accepts: 1000},
		},
		"advice": {
			{takes: 10 * s, rates: [3]int{2}, accepts: 1, advice: 0.4}, {takes: 10 * s, rates: [3]int{2}, accepts: 1, advice: 0.9},
			{takes: 150 * s, rates: [3]int{2}, accepts: 1000}, {takes: 20 * s, rates: [3]int{2}, accepts: 1, advice: 1},
		},
		"classes": {{takes: 10 * s, rates: [3]int{300}, accepts: 100, sheddable: true}, {takes: 10 * s, rates: [3]int{100}, accepts: 1000, sheddable: true}},
		"updates": {
			{takes: 10 * s, rates: [3]int{300}, accepts: 100, update: &throttle.Config{K: 1.1, MinRequests: 50}},
			{takes: 10 * s, rates: [3]int{300}, accepts: 100, update: &throttle.Config{K: 4, Window: 5 * s, ProbeInterval: 200 * time.Millisecond}},
			{takes: 5 * s, rates: [3]int{300}, update: &throttle.Config{Window: 20 * s}},
		},
		"long waits while nothing is served": {
			{takes: 5 * s, rates: [3]int{20, 5}, accepts: 1000}, {takes: 15 * s, rates: [3]int{20, 5}, hangs: true},
			{takes: 25 * s, rates: [3]int{20, 5}, hangs: true, limited: true}, {takes: 10 * s, rates: [3]int{20, 5}, accepts: 10, hangs: true},
		},
		"flapping": flapping(20, 300, s, 0, 1000), "flapping slowly": flapping(8, 60, 7*s, 0, 40), "up and down": flapping(10, 400, 4*s, 60, 500),
		"rare and flapping": flapping(12, 3, 9*s, 0, 1000),
		"few calls":         {{takes: 60 * s, rates: [3]int{3, 1}, accepts: 1}, {takes: 60 * s, rates: [3]int{3, 1}, accepts: 1000}},
	}
}

// flapping returns stages in which the backend accepts little and much in turn.
func flapping(stages, rate int, takes time.Duration, little, much int) (all []stage) {
	for i := range stages {
		accepts := much
		if i%2 == 1 {
			accepts = little
		}
		all = append(all, stage{takes: takes, rates: [3]int{rate}, accepts: accepts})
	}
	return all
}

// TestTrace compares the decisions and figures of a throttle with those recorded. Each second
// has a line, with a hash of all answers so far.
func TestTrace(t *testing.T) {
	race.SkipOneGoroutine(t)
	all := traces()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var out strings.Builder
	for i, name := range names {
		fmt.Fprintf(&out, "# %s\n", name)
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		routes, err := throttle.NewRoutes(throttle.Config{Rand: rng.Float64})
		if err != nil {
			t.Fatal(err)
		}
		r := &tracer{t: routes, rng: rng, out: &out}
		for _, s := range all[name] {
			r.run(t, s)
		}
	}
	golden.Check(t, "trace.golden", out.String())
}

// A tracer drives Routes in steps of 10 ms.
type tracer struct {
	t       *throttle.Routes
	rng     *rand.Rand
	out     *strings.Builder
	at      time.Duration
	now     time.Time
	pending []traced
	room    float64
	calls   int
	hash    golden.Digest
}

type traced struct {
	sent, ends time.Time
	ticket     spillway.Ticket
	route      throttle.Route
	class      spillway.Criticality
	outcome    spillway.Outcome
	advice     float64
}

var routeNames = [3]string{"/a", "/b", ""}

func (r *tracer) run(t *testing.T, s stage) {
	t.Helper()
	if s.update != nil {
		s.update.Rand = r.rng.Float64
		if err := r.t.Update(*s.update); err != nil {
			t.Fatal(err)
		}
	}
	r.now = t0.Add(r.at - s.back)
	for end := r.at + s.takes; r.at < end; r.at += 10 * time.Millisecond {
		r.now = r.now.Add(10 * time.Millisecond)
		r.room = min(r.room+float64(s.accepts)/100, max(1, float64(s.accepts)/20))
		if s.limited {
			r.t.Limited(r.now)
		}
		r.settle()
		for i, rate := range s.rates {
			for r.rng.Float64() < float64(rate)/(100+float64(rate)) {
				r.call(s, i)
			}
		}
		if r.at%time.Second == 0 {
			r.line()
		}
	}
}

func (r *tracer) settle() {
	r.pending = slices.DeleteFunc(r.pending, func(p traced) bool {
		if p.ends.After(r.now) {
			return false
		}
		r.t.Settle(p.sent, p.ends, &p.ticket, p.route, p.outcome)
		if p.advice > 0 {
			r.t.Advise(p.ends, p.class, p.advice)
		}
		return true
	})
}

func (r *tracer) call(s stage, i int) {
	r.calls++
	call, route := spillway.Call{}, throttle.Route{Name: routeNames[i]}
	if s.sheddable && r.calls%2 == 0 {
		call.Criticality = spillway.Sheddable
	}
	ticket, err := r.t.Admit(r.now, call, route)
	r.hash.Addf("%v %v %t", r.now.UnixNano(), err, r.t.Closed(call.Criticality, route))
	if err != nil {
		return
	}
	p := traced{r.now, r.now.Add(time.Duration(5+r.rng.IntN(30)) * time.Millisecond), ticket, route, call.Criticality, spillway.OutcomeServed, 0}
	switch {
	case s.broken && i == 0:
		p.outcome = spillway.OutcomeOverloaded
	case r.room >= 1:
		r.room--
		if r.calls%50 == 0 {
			p.outcome = spillway.OutcomeAbandoned
		}
	case s.hangs:
		p.outcome, p.ends = spillway.OutcomeTimedOut, r.now.Add(time.Second)
		if r.calls%2 == 0 {
			p.ends = r.now.Add(10 * time.Second)
		}
	default:
		p.outcome, p.advice = spillway.OutcomeOverloaded, s.advice
	}
	r.pending = append(r.pending, p)
}

func (r *tracer) line() {
	stats := r.t.Stats(r.now)
	r.hash.Addf("%v", stats)
	if r.at%(5*time.Second) != 0 {
		return
	}
	fmt.Fprintf(r.out, "%3.0fs", r.at.Seconds())
	for i, s := range stats {
		if s.Requests > 0 {
			fmt.Fprintf(r.out, "  class %d %v %.4g, limit %.4g/s, %.5g of %.5g, rejected %d, probes %d", i, s.State, s.Probability, s.Limit, s.Accepts, s.Requests, s.RejectedTotal, s.ProbesTotal)
		}
	}
	fmt.Fprintf(r.out, "  %x\n", r.hash)
}
