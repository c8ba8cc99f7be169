package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"
)

// A Trial offers stretches of load, one after the other, to a backend of its own:
// open loop, by one caller without retries and without Spillway. It is how a
// server is compared with others that do the same work behind something else.
//
// Before each trial whose backend has one processor, the two processes are kept
// apart as in a drill. Trials must not run at the same time.
type Trial struct {
	Backend  Backend // must have Rounds and name no Front: a func does not reach the child
	Args     []string
	Launch   Launch
	Deadline time.Duration // of a call, from its intended send
	Capacity float64       // calls per second that the loads are counted in
	Seed     uint64        // of the arrival times and their classes
	Load     []Stretch
}

// Launch starts the child, with the arguments that the Backend and the Trial
// have for it, by calling start once. Nil does no more than that.
type Launch func(cmd *exec.Cmd, start func() error) error

// A Stretch is constant load for a while.
type Stretch struct {
	Load   float64       // in capacities
	Length time.Duration // of all of it
	Settle time.Duration // how much of that, at the beginning, is not counted
}

// A StretchResult is what became of the calls of a Stretch that were to be sent
// after it had settled.
type StretchResult struct {
	Load         float64 `json:"load"`
	Seconds      float64 `json:"seconds"`       // that were counted
	GoodputRatio float64 `json:"goodput_ratio"` // answered in time, per second, over the capacity
	// P50MS and P99MS are of the answers within the deadline, as in [Run].
	P50MS *float64 `json:"p50_ms"`
	P99MS *float64 `json:"p99_ms"`
	Counts
	// ReadyS is how long after its beginning, settled or not, the service had come
	// to what it can do; null: not in this stretch. At a load from 1 up it has once
	// goodput is at least [ReadyShare] of the capacity in each second that follows,
	// below that as in a drill: see [RecoveryShare].
	ReadyS *float64 `json:"ready_s"`
}

// ReadyShare is the share of the capacity from which on an overloaded server is
// counted as protected, at whatever price. Seconds are looked at in steps of
// readyStep.
const (
	ReadyShare = 0.5
	readyStep  = 100 * time.Millisecond
)

// A TrialResult is what was measured in a Trial.
type TrialResult struct {
	Stretches     []StretchResult `json:"stretches"`
	LatenessP99MS float64         `json:"lateness_p99_ms"` // of the sends, over all of the trial
	// CPUPressure is the share of the trial in which some thread of the machine
	// was ready to run and had no processor; null where that is not known.
	CPUPressure *float64 `json:"cpu_pressure"`
}

// Deadline is the deadline of a drill that is given none.
func Deadline(kind string) time.Duration { return Config{Backend: kind}.withDefaults().Deadline }

// Measure returns the capacity of b without anything in front of it, and b with the
// Rounds by which others do the same work.
func (b Backend) Measure(ctx context.Context) (float64, Backend, error) {
	cpus, restore := apart(b.Procs)
	defer restore()
	p, err := b.start(ctx, func(cmd *exec.Cmd) error { return cpus.start(cmd.Start) })
	if err != nil {
		return 0, b, err
	}
	defer p.stop()
	ctx, unwatch := p.watch(ctx)
	defer unwatch()
	b.Rounds = p.rounds
	capacity, err := measureCapacity(ctx, p)
	return capacity, b, err
}

// apart prepares this process for a backend with procs processors, and returns
// what undoes that. Where the backend has more than one, the kernel decides who
// runs where.
func apart(procs int) (cpus *affinity, restore func()) {
	gc := debug.SetGCPercent(gcPercent)
	callers := runtime.GOMAXPROCS(max(1, runtime.NumCPU()-1))
	cpus = new(affinity)
	if procs <= 1 {
		*cpus = separate()
	}
	return cpus, func() {
		cpus.end()
		runtime.GOMAXPROCS(callers)
		debug.SetGCPercent(gc)
	}
}

// Run makes the trial. No process is left behind.
func (t Trial) Run(ctx context.Context) (*TrialResult, error) {
	phases, err := t.phases()
	if err != nil {
		return nil, err
	}
	cpus, restore := apart(t.Backend.Procs)
	defer restore()
	p, err := t.Backend.start(ctx, t.launch(cpus), t.Args...)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	ctx, unwatch := p.watch(ctx)
	defer unwatch()

	below := wire{}.transports(1, connections(t.Capacity, t.Deadline))
	defer below.close()
	caller := &naive{client: &http.Client{Transport: below}, url: p.url, timeout: t.Deadline}
	calls := deal(t.Seed, schedule(t.Seed, phases), []float64{1, 1, 1, 1}, 1)
	pressure := pressureFrom(time.Now())
	records := newGenerator(caller, t.Deadline, t.Deadline, calls).run(ctx, time.Now())
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	result := &TrialResult{CPUPressure: pressure(time.Now())}
	t.summarize(result, phases, records)
	return result, nil
}

func (t Trial) launch(cpus *affinity) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		start := func() error { return cpus.start(cmd.Start) }
		if t.Launch == nil {
			return start()
		}
		return t.Launch(cmd, start)
	}
}

// phases lays the stretches end to end. They may not ask for more calls than a
// drill may.
func (t Trial) phases() ([]Phase, error) {
	if t.Backend.Rounds < 1 || !(t.Capacity > 0) || t.Deadline <= 0 {
		return nil, errors.New("a trial needs rounds, a capacity and a deadline")
	}
	var all []Phase
	at, calls := 0.0, 0.0
	for _, s := range t.Load {
		end := at + s.Length.Seconds()
		if !(s.Load > 0) || s.Settle < 0 || s.Settle >= s.Length {
			return nil, fmt.Errorf("a stretch of %v at %v capacities, of which %v settle: want a load above 0 and something to count", s.Length, s.Load, s.Settle)
		}
		all = append(all, Phase{Start: at, End: end, Load: s.Load, OfferedRPS: s.Load * t.Capacity})
		calls += s.Load * t.Capacity * (end - at)
		at = end
	}
	if calls > maxCalls {
		return nil, fmt.Errorf("the stretches ask for %.0f calls, and a trial can keep %d", calls, maxCalls)
	}
	return all, nil
}

// pressureFrom returns a func that tells the pressure between start and its end.
func pressureFrom(start time.Time) func(end time.Time) *float64 {
	before, known := stalled(pressureFile)
	return func(end time.Time) *float64 {
		if after, still := stalled(pressureFile); known && still {
			return new((after - before).Seconds() / end.Sub(start).Seconds())
		}
		return nil
	}
}

func (t Trial) summarize(result *TrialResult, phases []Phase, records []record) {
	for i, s := range t.Load {
		from, end := seconds(phases[i].Start), seconds(phases[i].End)
		result.Stretches = append(result.Stretches, t.stretch(s, between(records, from+s.Settle, end)))
		result.Stretches[i].ReadyS = t.ready(s, between(records, from, end), from, end)
	}
	var run Run
	run.summarizeLateness(records)
	result.LatenessP99MS = run.LatenessP99MS
}

// stretch sums up the records of s that count.
func (t Trial) stretch(s Stretch, records []record) StretchResult {
	var run Run
	for i := range records {
		run.add(&records[i])
	}
	length := (s.Length - s.Settle).Seconds()
	run.summarizeStep(records, length, t.Capacity)
	return StretchResult{
		Load: s.Load, Seconds: length, GoodputRatio: run.GoodputRatio,
		P50MS: run.P50MS, P99MS: run.P99MS, Counts: run.Counts,
	}
}

// ready returns ReadyS of the records of s, which lasted from start to end.
func (t Trial) ready(s Stretch, records []record, start, end time.Duration) *float64 {
	if s.Load < 1 {
		if took, ok := recovery(records, start, end); ok {
			return new(took.Seconds())
		}
		return nil
	}
	var ready *float64
	for from := end - time.Second; from >= start; from -= readyStep {
		if float64(answered(between(records, from, from+time.Second))) < ReadyShare*t.Capacity {
			break
		}
		ready = new((from - start).Seconds())
	}
	return ready
}

// answered counts what was answered in time.
func answered(records []record) int {
	n := 0
	for i := range records {
		if records[i].outcome == good {
			n++
		}
	}
	return n
}
