package concurrency

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
)

// A stage is some time of a trace.
type stage struct {
	takes   time.Duration
	slots   int            // of the backend
	rates   map[string]int // requests per second by key
	leave   float64        // share of requests that are abandoned
	suspend float64        // share of requests that are suspended for half of their time
	holds   time.Duration  // each 200th request takes so much longer, outside the slots
	beats   time.Duration  // between heartbeats; 0: none
	drag    float64        // milliseconds that each request in service adds to the next ones
	busy    bool           // the heartbeats say so
	rest    bool           // the heart stops first
	update  *Config
}

// traces are loads whose every decision is recorded.
func traces() map[string][]stage {
	a := func(n int) map[string]int { return map[string]int{"a": n} }
	const beat = 10 * time.Millisecond
	return map[string][]stage{
		"overload and recovery": {
			{takes: 2 * time.Second, slots: 8, rates: a(300)}, {takes: 14 * time.Second, slots: 8, rates: a(800)},
			{takes: 4 * time.Second, slots: 4, rates: a(800)}, {takes: 15 * time.Second, slots: 16, rates: a(100)},
		},
		"two keys": {
			{takes: 2 * time.Second, slots: 12, rates: map[string]int{"a": 300, "b": 100}},
			{takes: 8 * time.Second, slots: 12, rates: map[string]int{"a": 200, "b": 900, "c": 20}},
		},
		"more keys than places": {
			{takes: 6 * time.Second, slots: 8, rates: map[string]int{"a": 100, "b": 100, "c": 100, "d": 500}, update: &Config{MaxKeys: 2}},
		},
		"bounds": {
			{takes: 3 * time.Second, slots: 8, rates: a(600), update: &Config{MinInFlight: 4, MaxInFlight: 20}},
			{takes: 2 * time.Second, slots: 8, rates: map[string]int{"a": 200, "b": 400}, update: &Config{MaxInFlight: 30, MaxInFlightByKey: map[string]int{"b": 6, "z": 1}}},
			{takes: time.Second, slots: 8, rates: a(600), update: &Config{Fixed: true, MaxInFlight: 12}},
		},
		"slow from the start": {{takes: 4 * time.Second, slots: 2, rates: a(1500)}, {takes: 14 * time.Second, slots: 2, rates: a(200)}},
		"no queue": {
			{takes: 3 * time.Second, slots: 1000, rates: a(200)}, {takes: 5 * time.Second, slots: 1000, rates: a(2000)},
		},
		"abandoned and suspended": {
			{takes: 3 * time.Second, slots: 10, rates: a(400), leave: 0.2, suspend: 0.3},
			{takes: 4 * time.Second, slots: 10, rates: a(900), leave: 0.2, suspend: 0.3},
		},
		"streams": {
			{takes: 5 * time.Second, slots: 10, rates: a(300), holds: 3 * time.Second},
			{takes: 6 * time.Second, slots: 10, rates: a(900), holds: 3 * time.Second},
		},
		"on and off": {
			{takes: 2 * time.Second, slots: 8, rates: a(300)}, {takes: time.Second, slots: 8, rates: a(3000)},
			{takes: 11 * time.Second, slots: 8, rates: a(200)}, {takes: 3 * time.Second, slots: 8, rates: a(900)},
			{takes: 12 * time.Second, slots: 8, rates: a(20)}, {takes: 3 * time.Second, slots: 8, rates: a(900)},
		},
		"hangs": {
			{takes: 3 * time.Second, slots: 8, rates: a(700)}, {takes: 3 * time.Second, rates: a(700)},
			{takes: 5 * time.Second, slots: 8, rates: a(700)}, {takes: time.Second, rates: a(50)}, {takes: 12 * time.Second, slots: 3, rates: a(700)},
		},
		"slower with the load": {
			{takes: 3 * time.Second, slots: 1000, rates: a(300), drag: 1}, {takes: 8 * time.Second, slots: 1000, rates: a(1500), drag: 1},
			{takes: 14 * time.Second, slots: 1000, rates: a(1700), drag: 1}, {takes: 5 * time.Second, slots: 1000, rates: a(600), drag: 4},
		},
		"heartbeats": {
			{takes: 2 * time.Second, slots: 8, rates: a(300), beats: beat}, {takes: 3 * time.Second, slots: 8, rates: a(700), beats: beat, busy: true},
			{takes: 3 * time.Second, slots: 8, rates: a(700), beats: 6 * beat}, {takes: 3 * time.Second, slots: 8, rates: a(700), rest: true},
		},
	}
}

// TestTrace compares the decisions and figures of a limiter with those recorded. Each second
// has a line, with a hash of what was seen in each of its milliseconds.
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
		r := &tracer{l: must(t, Config{}), rng: rand.New(rand.NewPCG(uint64(i), 5)), out: &out}
		for _, s := range all[name] {
			r.run(t, s)
		}
	}
	golden.Check(t, "trace.golden", out.String())
}

// A tracer drives a limiter in steps of a millisecond.
type tracer struct {
	l      *Limiter
	rng    *rand.Rand
	out    *strings.Builder
	at     time.Duration
	beat   time.Duration
	queue  []traced
	active []traced
	asked  int
	hash   golden.Digest
}

type traced struct {
	ticket            spillway.Ticket
	ends, half        time.Duration
	leaves, suspended bool
	stream            bool
}

func (r *tracer) run(t *testing.T, s stage) {
	t.Helper()
	if s.update != nil {
		if err := r.l.Update(*s.update); err != nil {
			t.Fatal(err)
		}
	}
	if s.rest {
		r.l.Rest()
	}
	for end := r.at + s.takes; r.at < end; r.at += time.Millisecond {
		now := t0.Add(r.at)
		if s.beats > 0 && r.at-r.beat >= s.beats {
			r.beat = r.at
			r.l.Beat(now, s.busy)
		}
		r.end(now)
		r.begin(now, s)
		r.record(now)
	}
}

func (r *tracer) end(now time.Time) {
	for i := range r.active {
		if a := &r.active[i]; a.suspended && r.at >= a.half {
			a.ticket, a.suspended = r.l.Resume(now, a.ticket), false
		}
	}
	r.active = slices.DeleteFunc(r.active, func(a traced) bool {
		if a.ends > r.at {
			return false
		}
		outcome := spillway.OutcomeServed
		if a.leaves {
			outcome = spillway.OutcomeAbandoned
		}
		a.ticket.Settle(now, outcome)
		return true
	})
}

func (r *tracer) begin(now time.Time, s stage) {
	for _, key := range []string{"a", "b", "c", "d"} {
		rate := float64(s.rates[key])
		for r.rng.Float64() < rate/(1000+rate) {
			r.arrive(now, key, s)
		}
	}
	working := 0
	for _, a := range r.active {
		if !a.stream {
			working++
		}
	}
	for ; len(r.queue) > 0 && working < s.slots; working++ {
		a := r.queue[0]
		r.queue = r.queue[1:]
		took := time.Duration(r.rng.ExpFloat64() * (20e6 + s.drag*float64(working)*1e6))
		if a.ends = r.at + took; a.stream {
			a.ends += s.holds
		}
		if a.suspended = r.rng.Float64() < s.suspend; a.suspended {
			a.half, a.ticket = r.at+took/2, r.l.Suspend(now, a.ticket)
		}
		r.active = append(r.active, a)
	}
}

// arrive asks in each of three ways in turn.
func (r *tracer) arrive(now time.Time, key string, s stage) {
	r.asked++
	a := traced{leaves: r.rng.Float64() < s.leave, stream: s.holds > 0 && r.asked%200 == 0}
	var ok bool
	switch r.asked % 3 {
	case 0:
		a.ticket, ok = r.l.Take(now, key, spillway.Critical, now.Add(time.Duration(r.rng.IntN(40))*time.Millisecond))
	case 1:
		pace := r.l.Ask(now, key)
		r.hash.Addf("%+v", pace)
		if ok = pace.Free; ok {
			a.ticket = r.l.Enter(now, call(key))
		}
	default:
		var err error
		a.ticket, err = r.l.Admit(now, call(key))
		ok = err == nil
	}
	if r.hash.Addf("%t", ok); ok {
		r.queue = append(r.queue, a)
	}
}

func (r *tracer) record(now time.Time) {
	if r.at%(10*time.Millisecond) != 0 {
		return
	}
	working, parked := r.l.Working()
	r.hash.Addf("%d %d", working, parked)
	if r.at%(100*time.Millisecond) == 0 {
		r.hash.Addf("%+v", r.l.Stats(now))
	}
	if r.at%time.Second != 0 {
		return
	}
	s := r.l.Stats(now)
	fmt.Fprintf(r.out, "%3.0fs", r.at.Seconds())
	for _, k := range append(s.Keys, s.Shared) {
		fmt.Fprintf(r.out, "  %s %v %d+%d/%.4g %.4g/s %v", k.Key, k.State, k.InFlight, k.Parked, k.Limit, k.Throughput, k.BaseLatency.Round(time.Microsecond))
	}
	fmt.Fprintf(r.out, "  rejected %d starved %t %x\n", s.RejectedTotal, s.Starved, r.hash)
}
