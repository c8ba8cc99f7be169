package load

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/cputime"
	"github.com/seed90641741/spillway/internal/race"
)

var t0 = time.Unix(1e9, 0)

func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

// nothing is a system without cgroups.
var nothing = cgroups{mount: "/nonexistent", self: "/nonexistent"}

func must(tb testing.TB, c Config) *Meter {
	tb.Helper()
	m, err := newMeter(c, nothing)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { m.Close() })
	return m
}

func TestConfigNamesTheBadField(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{Interval: time.Millisecond}, "load: Interval is 1ms, must be 10ms to 10s"},
		{Config{Smoothing: time.Hour}, "load: Smoothing is 1h0m0s, must be 10ms to 1m"},
		{Config{Signals: []Signal{{Name: "x"}}}, `load: Signals[0] is "x", must be a signal with a Name and a Read`},
		{Config{Targets: Targets{CPU: -1}}, "load: Targets.CPU is -1, must be 0 to 1"},
		{Config{Targets: Targets{CPU: 70}}, "load: Targets.CPU is 70, must be 0 to 1"},
		{Config{Targets: Targets{Memory: 80}}, "load: Targets.Memory is 80, must be 0 to 1"},
		{Config{Thresholds: map[string]Thresholds{"memory": {70, 75, 80, 90}}}, `load: Thresholds["memory"] is [70 75 80 90], must be of numbers of 0 to 1`},
		{Config{Targets: Targets{Queue: -time.Second}}, "load: Targets.Queue is -1, must be 0 or more"},
		{Config{Targets: Targets{Average: math.NaN()}}, "load: Targets.Average is NaN, must be 0 or more"},
	} {
		if _, err := New(row.config); err == nil || err.Error() != row.want {
			t.Errorf("New(%+v) = %v, want %s", row.config, err, row.want)
		}
	}
	m := must(t, Config{Signals: []Signal{{"x", func() float64 { return 3 }}}})
	if err := m.Update(Config{Interval: -1}); err == nil || m.Utilization(t0) != 3 {
		t.Errorf("a failed Update: %v, utilization %v", err, m.Utilization(t0))
	}
}

func TestMissingSourcesAreLeftOut(t *testing.T) {
	m := must(t, Config{})
	var text []string
	for _, err := range m.Missing() {
		text = append(text, err.Error())
	}
	all := strings.Join(text, "\n")
	if !strings.Contains(all, "load: quota: no cgroup sets a quota of processor time") || !strings.Contains(all, "load: memory: ") {
		t.Errorf("missing: %s", all)
	}
	for _, r := range m.Stats(t0).Readings {
		if r.Name == "quota" || r.Name == "throttled" || math.IsNaN(r.Value) {
			t.Errorf("reads %+v", r)
		}
	}
}

// A source that fails later is reported once and left out from then on.
func TestFailingSource(t *testing.T) {
	m := must(t, Config{Targets: Targets{CPU: 0.1}})
	before := len(m.Missing())
	m.mu.Lock()
	m.sources = []source{broken{}}
	m.mu.Unlock()
	for i := range 5 {
		if u := m.Utilization(at(1000 * i)); u != 0 {
			t.Errorf("a broken source counts: utilization %v", u)
		}
	}
	if n := len(m.Missing()) - before; n != 1 {
		t.Errorf("reported %d times", n)
	}
}

type broken struct{}

func (broken) read(_ time.Duration, into *readings) error {
	into[CPU] = 9
	return errors.New("gone")
}
func (broken) measures() []Measure { return []Measure{CPU} }
func (broken) Close() error        { return nil }

func TestCombination(t *testing.T) {
	a, b := 0.5, math.NaN()
	m := must(t, Config{
		Interval: 100 * time.Millisecond,
		Targets:  Targets{Queue: 10 * time.Millisecond},
		Signals:  []Signal{{"a", func() float64 { return a }}, {"b", func() float64 { return b }}},
	})
	for _, row := range []struct {
		at     int
		a, b   float64
		waited time.Duration
		want   float64
	}{
		{0, 0.5, math.NaN(), 0, 0.5},
		{50, 0.9, math.NaN(), 0, 0.5}, // too soon to sample
		{100, 0.9, math.NaN(), 0, 0.9},
		{200, 0.9, 1.5, 0, 1.5},
		{300, 0, 0, 12 * time.Millisecond, 1.2},
		{400, 0, 0, 0, 0}, // the wait was of the last interval
		{350, 7, 7, 0, 0}, // time that steps back
		{500, 7, 7, 0, 7},
	} {
		a, b = row.a, row.b
		m.Waited(row.waited)
		if u := m.Utilization(at(row.at)); math.Abs(u-row.want) > 1e-9 {
			t.Errorf("at %d ms: %v, want %v", row.at, u, row.want)
		}
	}
	var names []string
	for _, r := range m.Stats(at(500)).Readings {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, " "); got != "executor cpu scheduling queue a b" {
		t.Errorf("readings: %s", got)
	}
}

func TestMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	m := must(t, Config{})
	u := m.Utilization(t0)
	if u <= 0 || u > 0.9 {
		t.Errorf("of 1 GiB a test process uses %v", u)
	}
	c := tree(t, "0::/\n", map[string]string{"memory.max": "4096\n"})
	small, err := newMeter(Config{}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if u := small.Utilization(t0); u < 100 {
		t.Errorf("of 4 KiB a test process uses %v", u)
	}
	if err := small.Update(Config{Targets: Targets{Memory: -1}}); err != nil || small.Utilization(at(1000)) != 0 {
		t.Errorf("without a target memory counts: %v, %v", err, small.Utilization(at(1000)))
	}
}

func TestExecutor(t *testing.T) {
	m := must(t, Config{})
	x := m.Executor(t0)
	if x.Running < 1 || x.Processors < 1 || x.Runnable < 0 {
		t.Errorf("%+v", x)
	}
}

// The average follows a step with its time constant, whatever the intervals.
func TestSmoothing(t *testing.T) {
	for _, steps := range []int{1, 3, 50} {
		e := newExecutor(time.Second)
		for range steps {
			e.running.Store(8)
			e.runnable.Store(2)
			e.processors.Store(5)
			e.smooth(time.Second / time.Duration(steps))
		}
		if want := 2 * (1 - 1/math.E); math.Abs(e.average-want) > 1e-9 {
			t.Errorf("%d steps: average %v, want %v", steps, e.average, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	h := &metrics.Float64Histogram{Counts: []uint64{10, 0, 5, 1}, Buckets: []float64{0, 1, 2, 3, math.Inf(1)}}
	for _, row := range []struct {
		before []uint64
		q      float64
		want   float64
	}{
		{[]uint64{0, 0, 0, 0}, 0.5, 1},
		{[]uint64{0, 0, 0, 0}, 0.9, 3},
		{[]uint64{0, 0, 0, 0}, 1, 3},
		{[]uint64{10, 0, 0, 1}, 0.5, 3},
		{[]uint64{10, 0, 5, 0}, 0.99, 3},
		{[]uint64{10, 0, 5, 1}, 0.99, 0},
	} {
		if got := quantile(h, row.before, row.q); got != row.want {
			t.Errorf("since %v: %v of all are below %v, want %v", row.before, row.q, got, row.want)
		}
	}
}

func TestCPU(t *testing.T) {
	if _, err := cputime.Process(); err != nil {
		t.Skip(err)
	}
	m := must(t, Config{})
	var used time.Duration
	for _, s := range m.sources {
		if p, ok := s.(*process); ok {
			p.used, p.before = func() (time.Duration, error) { return used, nil }, 0
		}
	}
	m.executor.processors.Store(2)
	m.executor.last = at(1000) // keep the processors
	m.Utilization(at(0))
	used = 150 * time.Millisecond
	m.mu.Lock()
	m.config.Interval = 100 * time.Millisecond
	m.mu.Unlock()
	m.Utilization(at(100))
	if got := m.CPU(); math.Abs(got-0.75) > 1e-9 {
		t.Errorf("150 ms of two processors in 100 ms: %v", got)
	}
}

// TestRefresh: a reading is used again for a while, unless it is known to be old.
func TestRefresh(t *testing.T) {
	m := must(t, Config{})
	m.Executor(at(0))
	m.executor.runnable.Store(1000)
	if got := m.Executor(at(0)); got.Runnable != 1000 {
		t.Errorf("%+v: the scheduler was read again at once", got)
	}
	m.Refresh(at(0))
	if got := m.Executor(at(0)); got.Runnable == 1000 {
		t.Errorf("%+v after Refresh", got)
	}
}

func TestMeasureNames(t *testing.T) {
	if Memory.String() != "memory" || Measure(99).String() != "Measure(99)" {
		t.Errorf("%v, %v", Memory, Measure(99))
	}
}

func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := tree(t, "0::/\n", map[string]string{
		"memory.max": "1073741824\n", "cpu.max": "150000 100000\n",
		"cpu.stat": "usage_usec 1000000\nnr_periods 10\nnr_throttled 1\n",
	})
	m, err := newMeter(Config{Signals: []Signal{{"a", func() float64 { return 1 }}}}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	now := t0
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		m.Utilization(now)
		m.Executor(now)
		m.Waited(time.Millisecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(m.sources) != 4 {
		t.Errorf("%d sources, with %v missing", len(m.sources), m.Missing())
	}
}

func BenchmarkExecutor(b *testing.B) {
	m := must(b, Config{})
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		m.Executor(now)
	}
}

func BenchmarkUtilization(b *testing.B) {
	m := must(b, Config{})
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		m.Utilization(now)
	}
}

// A sample is taken ten times a second.
func BenchmarkSample(b *testing.B) {
	m, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		m.Utilization(now)
	}
}

// The runtime collects garbage before it reaches GOMEMLIMIT, and with GOGC=off lets it grow until then: garbage is no load. A cgroup
// kills a process that reaches its limit, garbage or not.
func TestGarbageCountsForTheLimitOfTheCgroup(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	runtime.GC()
	for range 128 {
		garbage = make([]byte, 1<<20)
	}
	garbage = nil
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	held := int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
	m, err := newMeter(Config{}, tree(t, "0::/\n", map[string]string{"memory.max": fmt.Sprintln(held)}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if u := m.Utilization(at(0)); u < 1 || !m.ShortOfMemory() {
		t.Errorf("at the limit of the cgroup: utilization %v, short of memory %v", u, m.ShortOfMemory())
	}
	debug.SetMemoryLimit(held)
	if u := m.Utilization(at(1000)); u > 0.5 || m.ShortOfMemory() {
		t.Errorf("garbage up to GOMEMLIMIT: utilization %v, short of memory %v", u, m.ShortOfMemory())
	}
}

var garbage []byte

// The lowest class is rejected first, so that memory is short from its threshold on.
func TestShortOfMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	runtime.GC()
	m := must(t, Config{})
	m.Utilization(at(0))
	used := m.values[Memory]
	for i, row := range []struct {
		config Config
		short  bool
	}{
		{Config{}, false},
		{Config{Targets: Targets{Memory: used / 0.6}}, false},
		{Config{Targets: Targets{Memory: used / 0.9}}, true},
		{Config{Targets: Targets{Memory: used / 0.9}, Reference: Thresholds{1, 2, 3, 4}}, false},
		{Config{Thresholds: map[string]Thresholds{"memory": {used / 1.2, 0.5, 0.75, 1}}}, true},
		{Config{Targets: Targets{Memory: -1}}, false},
	} {
		if err := m.Update(row.config); err != nil {
			t.Fatal(err)
		}
		if m.Utilization(at(1000 * (i + 1))); m.ShortOfMemory() != row.short {
			t.Errorf("%+v: short of memory %v", row.config, !row.short)
		}
	}
}
