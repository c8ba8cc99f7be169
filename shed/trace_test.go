package shed_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/golden"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// A tracePhase is some time of a trace.
type tracePhase struct {
	takes       time.Duration
	load        float64         // arrivals for each request that can be served
	callers     []float64       // their shares of the arrivals; nil: the callers are unknown
	streams     float64         // share of the requests that are suspended while they are served
	deadlines   float64         // share of the requests that have one
	utilization float64         // at the end of the phase; it moves there
	back        time.Duration   // the clock is set back
	keys        int             // of the calls
	work        []time.Duration // one of these
	thresholds  [spillway.Criticalities]float64
}

// A traceOf is a server and its load.
type traceOf struct {
	limit      int // requests at work; 0: the processors are the limit
	byKey      map[string]int
	processors int
	phases     []tracePhase
}

// traces are loads whose every decision is recorded.
func traces() map[string]traceOf {
	quick, mixed, slow := []time.Duration{4 * ms}, []time.Duration{2 * ms, 2 * ms, 2 * ms, 40 * ms}, []time.Duration{60 * ms}
	one := []float64{0.7, 0.1, 0.1, 0.05, 0.05}
	const s = time.Second
	return map[string]traceOf{
		"processors": {processors: 2, phases: []tracePhase{
			{takes: s, load: 0.7, work: quick}, {takes: 3 * s, load: 3, work: quick, deadlines: 0.3},
			{takes: 2 * s, load: 0.6, work: quick}, {takes: 2 * s, load: 1.1, work: mixed}, {takes: s, load: 8, work: quick},
		}},
		"callers at processors": {processors: 2, phases: []tracePhase{
			{takes: 3 * s, load: 3, work: quick, callers: one}, {takes: 3 * s, load: 2, work: mixed, callers: one, streams: 0.05},
			{takes: 3 * s, load: 0.5, work: quick, callers: one},
		}},
		"limit": {limit: 8, processors: 2, phases: []tracePhase{
			{takes: s, load: 0.7, work: slow}, {takes: 4 * s, load: 3, work: slow, deadlines: 0.5},
			{takes: 2 * s, load: 0.6, work: slow}, {takes: 2 * s, load: 1.5, work: mixed, streams: 0.1},
		}},
		"callers at a limit": {limit: 8, processors: 2, phases: []tracePhase{
			{takes: 5 * s, load: 3, work: slow, callers: one}, {takes: 5 * s, load: 4, work: mixed, callers: one, streams: 0.1, deadlines: 0.2},
			{takes: s, load: 0.5, work: slow, callers: one}, {takes: 4 * s, load: 2, work: slow, callers: slices.Repeat([]float64{0.01}, 100)},
		}},
		"keys": {limit: 12, byKey: map[string]int{"k0": 2, "k1": 3}, processors: 4, phases: []tracePhase{
			{takes: 4 * s, load: 1.5, work: slow, keys: 3, deadlines: 0.2}, {takes: 3 * s, load: 0.8, work: mixed, keys: 3, callers: one},
		}},
		"utilization": {processors: 2, phases: []tracePhase{
			{takes: 2 * s, load: 0.8, work: quick, utilization: 1.1}, {takes: 2 * s, load: 0.8, work: quick, utilization: 0.7},
			{takes: 2 * s, load: 0.8, work: quick, callers: one, utilization: 0.99}, {takes: 2 * s, load: 2, work: quick, callers: one, utilization: 0.99},
			{takes: 2 * s, load: 0.8, work: quick, utilization: 0.5, thresholds: [4]float64{0.4, 0.5, 0.6, 0.7}},
		}},
		"clock set back": {processors: 2, limit: 20, phases: []tracePhase{
			{takes: s, load: 3, work: quick, callers: one}, {takes: s, load: 3, work: quick, callers: one, back: s / 2}, {takes: s, load: 0.5, work: quick},
		}},
	}
}

// TestTrace compares the decisions of Shedders with those recorded. Each 250 ms have a line, with
// a hash of all answers so far.
func TestTrace(t *testing.T) {
	race.SkipOneGoroutine(t)
	all := traces()
	var out strings.Builder
	for i, name := range sorted(all) {
		fmt.Fprintf(&out, "# %s\n", name)
		of, rng := all[name], rand.New(rand.NewPCG(uint64(i), 5))
		x := &traced{traceOf: of, rng: rng, out: &out, now: t0, config: shed.Config{Rand: rng.Float64}}
		if of.limit > 0 {
			x.config.Limit = limiter(t, concurrency.Config{MaxInFlight: of.limit, Fixed: true, MaxInFlightByKey: of.byKey})
		}
		x.s = must(t, x.config)
		for _, p := range of.phases {
			x.run(t, p)
		}
	}
	golden.Check(t, "trace.golden", out.String())
}

// sorted returns the keys of a map in order.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// A job is a request of a trace.
type job struct {
	shed.Waiter

	ticket    spillway.Ticket
	left      time.Duration // work
	waits     time.Duration // for at most
	leaves    time.Duration // the client leaves after this wait
	suspended time.Duration // for this time from now on
	stream    bool
}

// A traced server makes steps of 1 ms.
type traced struct {
	traceOf

	s           *shed.Shedder
	config      shed.Config
	rng         *rand.Rand
	out         *strings.Builder
	now         time.Time
	utilization float64
	running     []*job
	waiting     []*job
	arriving    float64
	counts      [16]int // run, wait, and rejected by reason
	hash        golden.Digest
}

func (x *traced) run(t *testing.T, p tracePhase) {
	t.Helper()
	if p.thresholds != ([4]float64{}) {
		x.config.Thresholds = p.thresholds
		if err := x.s.Update(x.config); err != nil {
			t.Fatal(err)
		}
	}
	x.now = x.now.Add(-p.back)
	mean := time.Duration(0)
	for _, w := range p.work {
		mean += w / time.Duration(len(p.work))
	}
	servers := x.processors
	if x.limit > 0 {
		servers = x.limit
	}
	steps, from := int(p.takes/ms), x.utilization
	for i := range steps {
		x.now = x.now.Add(ms)
		x.utilization = from + float64((p.utilization-from)*float64(i+1)/float64(steps))
		x.work(p)
		x.leave()
		x.next()
		for x.arriving += float64(p.load * float64(servers) * float64(ms) / float64(mean)); x.arriving >= 1; x.arriving-- {
			x.arrive(p)
		}
		if i%250 == 249 {
			x.line()
		}
	}
}

// state is that of the process: requests compete for the processors if nothing else limits them.
func (x *traced) state() shed.State {
	s := shed.State{Processors: x.processors, Utilization: x.utilization}
	if x.limit == 0 {
		s.Runnable = len(x.running)
	}
	return s
}

// work serves requests for 1 ms.
func (x *traced) work(p tracePhase) {
	for i := 0; i < len(x.running); i++ {
		j := x.running[i]
		if x.limit == 0 && i >= x.processors {
			break
		}
		switch {
		case j.suspended > ms:
			j.suspended -= ms
			continue
		case j.suspended > 0:
			j.suspended = 0
			j.ticket.Resume(x.now)
		case j.stream && j.left == p.work[0]/2:
			j.suspended = 30 * ms
			j.ticket.Suspend(x.now)
		}
		if j.left -= ms; j.left <= 0 {
			j.ticket.Settle(x.now, spillway.OutcomeServed)
			x.running = slices.Delete(x.running, i, i+1)
			i--
		}
	}
}

// leave ends the waits that are over.
func (x *traced) leave() {
	x.waiting = slices.DeleteFunc(x.waiting, func(j *job) bool {
		j.waits -= ms
		j.leaves -= ms
		switch {
		case j.waits <= 0:
			return x.s.Expire(&j.Waiter) && x.rejected(j.Err)
		case j.leaves <= 0:
			return x.s.Withdraw(&j.Waiter)
		}
		return false
	})
}

// next runs requests that leave the queue.
func (x *traced) next() {
	for {
		w, busy := x.s.Next(x.now, x.state())
		x.hash.Addf("%t", busy)
		if w == nil {
			return
		}
		j := w.Owner.(*job)
		x.waiting = slices.DeleteFunc(x.waiting, func(other *job) bool { return other == j })
		if w.Err != nil {
			x.rejected(w.Err)
			continue
		}
		j.ticket = w.Ticket
		x.running = append(x.running, j)
		x.hash.Addf("next %d", w.Flow)
	}
}

func (x *traced) rejected(err error) bool {
	e := err.(*spillway.RejectedError)
	x.counts[2+int(e.Reason)]++
	x.hash.Addf("%v %.4g %.4g", e.Reason, e.Level, e.Limit)
	return true
}

// request returns a random request and its call.
func (x *traced) request(p tracePhase) (*job, *spillway.Call) {
	j := &job{left: p.work[x.rng.IntN(len(p.work))], leaves: time.Hour, stream: x.rng.Float64() < p.streams}
	j.Owner = j
	for part, i := x.rng.Float64(), 0; i < len(p.callers) && part >= 0; i++ {
		part -= p.callers[i]
		j.Flow = uint64(i + 1)
	}
	if x.rng.IntN(10) == 0 {
		j.leaves = 15 * ms
	}
	call := &spillway.Call{Criticality: spillway.Sheddable + spillway.Criticality(x.rng.IntN(4))}
	if p.keys > 0 {
		call.Key = fmt.Sprintf("k%d", x.rng.IntN(p.keys))
	}
	if x.rng.Float64() < p.deadlines {
		call.Deadline = x.now.Add(time.Duration(x.rng.IntN(200)-5) * ms)
	}
	return j, call
}

// arrive asks as a server does: early, then without the lock, then with it.
func (x *traced) arrive(p tracePhase) {
	j, call := x.request(p)
	state := x.state()
	if err := x.s.Reject(x.now, call, j.Flow, &state); err != nil {
		x.rejected(err)
		return
	}
	if x.s.Pass(x.now, call, &state, &j.ticket) {
		x.counts[0]++
		x.running = append(x.running, j)
		return
	}
	d := x.s.Arrive(x.now, call, &state, &j.Waiter)
	x.hash.Addf("%d %v", d.Verdict, d.MaxWait)
	if d.Evicted != nil {
		x.waiting = slices.DeleteFunc(x.waiting, func(other *job) bool { return &other.Waiter == d.Evicted })
		x.rejected(d.Evicted.Err)
	}
	switch d.Verdict {
	case shed.Run:
		x.counts[0]++
		j.ticket = d.Ticket
		x.running = append(x.running, j)
	case shed.Wait:
		x.counts[1]++
		j.waits = d.MaxWait
		x.waiting = append(x.waiting, j)
	default:
		x.rejected(d.Err)
	}
}

func (x *traced) line() {
	st := x.s.Stats(x.now)
	fmt.Fprintf(x.out, "%v: %v, %d running, %d waiting, depth %.4g, rejected %.4g",
		x.now.Sub(t0), x.counts, len(x.running), len(x.waiting), st.Depth, st.RejectedRatio)
	for _, c := range st.Classes {
		fmt.Fprintf(x.out, " %.4g", c.RejectedRatio)
	}
	fmt.Fprintf(x.out, ", %x\n", x.hash)
	clear(x.counts[:])
}
