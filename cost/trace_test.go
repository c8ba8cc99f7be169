package cost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/golden"
)

// A stage is some time of a trace.
type stage struct {
	takes    time.Duration
	callers  []*caller
	jobs     float64       // processor seconds that a job takes once in seven intervals
	rejected int           // calls in each interval
	stands   time.Duration // the process stands still after the stage
	back     time.Duration // the clock is set back after the stage
	lost     bool          // the processor time is not known
}

// traces are loads whose every estimate is recorded.
func traces() []struct {
	name   string
	config Config
	stages []stage
} {
	const s = time.Second
	dear, cheap := pair()
	long := &caller{key: "long", rate: 2, cpu: 200, vary: 0.2, took: 2500 * time.Millisecond}
	rare := &caller{key: "rare", rate: 0.5, cpu: 30}
	unnamed := &caller{rate: 50, cpu: 2, took: 20 * time.Millisecond}
	turned := func(key string, cpu float64) *caller {
		return &caller{key: key, rate: 20, even: true, cpu: cpu, turn: func(at time.Duration) float64 { return float64(at / s % 3) }}
	}
	changing := &caller{key: "changing", rate: 30, cpu: 4, vary: 0.5, now: func(at time.Duration) float64 {
		return []float64{1, 8, 0.1, 1}[at/(40*s)%4]
	}}
	return []struct {
		name   string
		config Config
		stages []stage
	}{
		{"two customers", Config{}, []stage{{takes: 60 * s, callers: []*caller{dear, cheap}}, {takes: 30 * s, callers: []*caller{cheap}}}},
		{"changes", Config{}, []stage{{takes: 170 * s, callers: []*caller{changing, cheap}}}},
		{"always together", Config{}, []stage{
			{takes: 40 * s, callers: []*caller{turned("a", 10), turned("b", 1)}}, {takes: 30 * s, callers: []*caller{turned("a", 10), cheap}},
		}},
		{"jobs and rejections", Config{}, []stage{
			{takes: 40 * s, callers: []*caller{dear, cheap}, jobs: 0.7}, {takes: 40 * s, callers: []*caller{dear}, rejected: 2000},
			{takes: 20 * s, rejected: 2000},
		}},
		{"long and rare calls", Config{}, []stage{{takes: 90 * s, callers: []*caller{long, rare, unnamed}}}},
		{"short intervals", Config{Interval: 100 * time.Millisecond, Unit: 10 * time.Millisecond, MaxError: 0.1}, []stage{
			{takes: 8 * s, callers: []*caller{dear, cheap, long}}, {takes: 4 * s, callers: []*caller{cheap}, back: s}, {takes: 4 * s, callers: []*caller{dear, cheap}},
		}},
		{"few places", Config{MaxKeys: 2}, []stage{
			{takes: 30 * s, callers: []*caller{dear, cheap, unnamed, rare}}, {takes: 10 * s, callers: []*caller{cheap}, stands: 10 * time.Minute},
			{takes: 30 * s, callers: []*caller{unnamed, rare, long}},
		}},
		{"standstill and unknown time", Config{}, []stage{
			{takes: 20 * s, callers: []*caller{dear, cheap}, stands: 3 * s}, {takes: 20 * s, callers: []*caller{dear, cheap}, stands: 20 * s},
			{takes: 7 * s, callers: []*caller{dear, cheap}, lost: true}, {takes: 20 * s, callers: []*caller{dear, cheap}},
		}},
	}
}

// TestTrace compares what an Estimator learns with what is recorded: a line for every second.
func TestTrace(t *testing.T) {
	var out strings.Builder
	for i, trace := range traces() {
		fmt.Fprintf(&out, "# %s\n", trace.name)
		w := newWorld(t, uint64(i), trace.config)
		w.idle = 0.02
		for _, stage := range trace.stages {
			w.trace(stage, &out)
		}
	}
	golden.Check(t, "trace.golden", out.String())
}

// trace runs a stage in steps of a second.
func (w *world) trace(s stage, out *strings.Builder) {
	w.lost = s.lost
	for end, n := w.at+s.takes, 0; w.at < end; n++ {
		w.run(min(time.Second, end-w.at), s.callers...)
		if n%7 == 3 {
			w.cpu += s.jobs
		}
		for range s.rejected {
			w.Reject(t0.Add(w.at))
			w.cpu += 20e-6
		}
		w.line(out)
	}
	w.at += s.stands - s.back
	for i := range w.calls { // go on where they were
		w.calls[i].from, w.calls[i].to = w.calls[i].from+s.stands-s.back, w.calls[i].to+s.stands-s.back
	}
}

// line writes the estimates, with four digits, and what calls are charged.
func (w *world) line(out *strings.Builder) {
	stats := w.Stats(time.Now())
	fmt.Fprintf(out, "%v: background %.4g rejected %.4g", w.at, stats.Background, stats.Rejected.Seconds()*1e6)
	for i, k := range stats.Keys {
		cost, deviation := k.milliseconds()
		fmt.Fprintf(out, "  %s %.4g±%.4g %t %.4g (%d)", k.Key, cost, deviation, k.Used, w.keys[shared+i].cost, k.Calls)
	}
	fmt.Fprintln(out)
}
