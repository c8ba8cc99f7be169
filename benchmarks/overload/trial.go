package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// A stretch is constant load for a while.
type stretch struct {
	load   float64       // in capacities
	length time.Duration // of all of it
	settle time.Duration // how much of that, at the beginning, is not counted
}

// A trial offers stretches of load, one after the other, to a new backend, by clients
// without retries and without Spillway.
type trial struct {
	backend  backendCommand
	launch   launch
	capacity float64 // calls per second that the loads are counted in
	seed     uint64
	load     []stretch
}

// maxCalls is how many calls are kept at most.
const maxCalls = 5_000_000

// run makes the trial. No process is left behind.
func (t *trial) run(ctx context.Context, cpus *machine.Affinity) (*outcomes, error) {
	n := 0.0
	for _, s := range t.load {
		n += s.load * t.capacity * s.length.Seconds()
	}
	if n > maxCalls {
		return nil, usage{fmt.Errorf("%.0f calls are more than %d: choose a shorter --step or --warm-up", n, maxCalls)}
	}
	p, err := t.backend.start(ctx, cpus, t.launch)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	ctx, unwatch := p.watch(ctx)
	defer unwatch()
	deadline := deadlineOf(t.backend.Kind)
	f, _ := frontNamed(t.backend.Front)
	c, err := p.caller(connections(t.capacity, deadline), f.clients)
	if err != nil {
		return nil, err
	}
	defer c.close()
	calls := schedule(t.seed, t.load, t.capacity)
	g := &generator{caller: c, deadline: deadline}
	pressure := machine.Pressure()
	if err := g.run(ctx, calls); err != nil {
		return nil, err
	}
	return t.summarize(calls, pressure()), nil
}

// connections is how many calls the server can do in four deadlines.
func connections(capacity float64, deadline time.Duration) int {
	return min(max(int(math.Ceil(4*capacity*deadline.Seconds())), 64), 4096)
}

// outcomes is what was measured in a trial.
type outcomes struct {
	steps         []Step
	latenessP99MS float64 // of the sends
	pressure      *float64
}

// A Step counts the calls of a stretch that were to be sent after it had settled.
type Step struct {
	Load         float64 `json:"load"`
	Seconds      float64 `json:"seconds"`
	GoodputRatio float64 `json:"goodput_ratio"` // answered in time, per second, over the capacity
	// P50MS and P99MS are of the answers in time; the second of 1,000 or more.
	P50MS    *float64 `json:"p50_ms"`
	P99MS    *float64 `json:"p99_ms"`
	Offered  int      `json:"offered"`
	Good     int      `json:"good"`
	Late     int      `json:"late"`
	Rejected int      `json:"rejected"`
	Reset    int      `json:"reset"`
	Lost     int      `json:"lost"`
	Failed   int      `json:"failed"`
	Unsent   int      `json:"unsent"`
	// ReadyS is how long after its beginning, settled or not, the server had come to what
	// it can do; null: not in this stretch.
	ReadyS *float64 `json:"ready_s"`
	// Classes has the calls of each class, the most critical first.
	Classes []ClassStep `json:"classes"`
}

// A server in overload does what it can once it answers half of its capacity in time in each
// second that follows. One in the calm does once 95 % of the calls of each window are answered
// in time, for a second.
const (
	readyShare     = 0.5
	readyStep      = 100 * time.Millisecond
	recoveryWindow = 250 * time.Millisecond
	recoveryHold   = int(time.Second / recoveryWindow)
	recoveryShare  = 0.95
	samplesP99     = 1000
)

func (t *trial) summarize(calls []call, pressure *float64) *outcomes {
	result := &outcomes{pressure: pressure}
	from := time.Duration(0)
	for _, s := range t.load {
		end := from + s.length
		step := s.sum(between(calls, from+s.settle, end), t.capacity)
		if s.load < 1 {
			step.ReadyS = recovery(calls, from, end)
		} else {
			step.ReadyS = reaction(calls, from, end, t.capacity)
		}
		result.steps = append(result.steps, step)
		from = end
	}
	behind := make([]time.Duration, len(calls))
	for i := range calls {
		behind[i] = calls[i].sent - calls[i].at
	}
	if late := quantile(behind, 0.99); late != nil {
		result.latenessP99MS = *late
	}
	return result
}

func (s stretch) sum(calls []call, capacity float64) Step {
	step := Step{Load: s.load, Seconds: (s.length - s.settle).Seconds(), Offered: len(calls)}
	var latencies []time.Duration
	for i := range calls {
		*step.count(calls[i].outcome)++
		if calls[i].outcome == good {
			latencies = append(latencies, calls[i].latency())
		}
	}
	step.GoodputRatio = float64(step.Good) / step.Seconds / capacity
	step.P50MS, step.P99MS = middleAndTail(latencies)
	step.Classes = byClass(calls)
	return step
}

func (s *Step) count(o outcome) *int {
	switch o {
	case good:
		return &s.Good
	case late:
		return &s.Late
	case rejected:
		return &s.Rejected
	case reset:
		return &s.Reset
	case lost:
		return &s.Lost
	case failed:
		return &s.Failed
	case unsent:
	}
	return &s.Unsent
}

// between returns the calls with an intended send in [from, to).
func between(calls []call, from, to time.Duration) []call {
	first := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(calls, t, func(c call, t time.Duration) int { return cmp.Compare(c.at, t) })
		return i
	}
	return calls[first(from):max(first(from), first(to))]
}

func answered(calls []call) (n int) {
	for i := range calls {
		if calls[i].outcome == good {
			n++
		}
	}
	return n
}

func reaction(calls []call, start, end time.Duration, capacity float64) (ready *float64) {
	for from := end - time.Second; from >= start; from -= readyStep {
		if float64(answered(between(calls, from, from+time.Second))) < readyShare*capacity {
			break
		}
		ready = new((from - start).Seconds())
	}
	return ready
}

func recovery(calls []call, start, end time.Duration) *float64 {
	held := 0
	for w := range int((end - start) / recoveryWindow) {
		from := start + time.Duration(w)*recoveryWindow
		in := between(calls, from, from+recoveryWindow)
		held++
		if float64(answered(in)) < recoveryShare*float64(len(in)) {
			held = 0
		}
		if held == recoveryHold {
			return new((time.Duration(w+1-held) * recoveryWindow).Seconds())
		}
	}
	return nil
}

// middleAndTail returns the p50, and the p99 of enough samples. It sorts them.
func middleAndTail(samples []time.Duration) (p50, p99 *float64) {
	p50 = quantile(samples, 0.5)
	if len(samples) >= samplesP99 {
		p99 = quantile(samples, 0.99)
	}
	return p50, p99
}

// quantile returns the smallest sample that at least the share q of all samples do not
// exceed, in milliseconds, and nil of none. It sorts samples.
func quantile(samples []time.Duration, q float64) *float64 {
	if len(samples) == 0 {
		return nil
	}
	slices.Sort(samples)
	rank := max(1, int(math.Ceil(q*float64(len(samples)))))
	return new(float64(samples[rank-1]) / float64(time.Millisecond))
}
