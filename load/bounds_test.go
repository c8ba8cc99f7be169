package load

import (
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	const least = 10 * time.Millisecond
	for _, c := range []Config{
		{Interval: least}, {Interval: 10 * time.Second}, {Smoothing: least}, {Smoothing: time.Minute},
		{Reference: Thresholds{1, 2, 3, math.MaxFloat32}}, {Targets: Targets{Average: math.MaxFloat32}},
	} {
		must(t, c)
	}
	for _, c := range []Config{
		{Interval: least - 1}, {Interval: 10*time.Second + 1}, {Smoothing: least - 1}, {Smoothing: time.Minute + 1},
		{Reference: Thresholds{1, 2, 2, 3}}, {Reference: Thresholds{0, 1, 2, 3}}, {Reference: Thresholds{1, 2, 3, math.Inf(1)}},
		{Targets: Targets{Average: math.Inf(1)}},
	} {
		if _, err := newMeter(c, nothing); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	if got := Measure(Measures).String(); got != "Measure(7)" {
		t.Errorf("the measure after the last one is %q", got)
	}
}

// A measure without a target is reported and does not count.
func TestMeasureWithoutATarget(t *testing.T) {
	m := must(t, Config{})
	if r := m.reading("cpu", 0.5, 0); r.Share != 0 || r.Value != 0.5 {
		t.Errorf("%+v, want a share of 0", r)
	}
}

// The executor is read again when a reading has become old, and not before.
func TestReadingOfTheExecutorBecomesOld(t *testing.T) {
	e := newExecutor(time.Second)
	for _, row := range []struct{ at, read time.Duration }{{0, 0}, {fresh - 1, 0}, {fresh, fresh}, {fresh + 1, fresh}, {2 * fresh, 2 * fresh}} {
		e.at(t0.Add(row.at))
		if got := e.last.Sub(t0); got != row.read {
			t.Errorf("at %v the last reading is of %v, want %v", row.at, got, row.read)
		}
	}
	var seen atomic.Int64
	seen.Store(t0.UnixNano())
	for passed, want := range map[time.Duration]bool{-1: false, 0: true, fresh - 1: true, fresh: false} {
		if within(t0.Add(passed), &seen, fresh) != want {
			t.Errorf("after %v a reading is fresh: %v", passed, !want)
		}
	}
}

// The processor time is that since the last reading, by user and system, for each processor.
func TestProcessorTime(t *testing.T) {
	e := newExecutor(time.Second)
	e.processors.Store(2)
	p := &process{used: func() (time.Duration, error) { return 5 * time.Second, nil }, executor: e, before: time.Second}
	var got readings
	if err := p.read(4*time.Second, &got); err != nil || got[CPU] != 0.5 {
		t.Errorf("4 s of 2 processors in 4 s are %v, %v; want 0.5", got[CPU], err)
	}
	if err := p.read(4*time.Second, &got); err != nil || got[CPU] != 0 {
		t.Errorf("and nothing more is %v, %v", got[CPU], err)
	}
}

// The quota is that of the first two words, the use is that since the last reading, and where no
// period has passed none was throttled.
func TestReadingsOfAQuota(t *testing.T) {
	c := tree(t, "0::/app\n", map[string]string{"app/cpu.max": "100000 50000 1\n", "app/cpu.stat": "usage_usec 1000000\nnr_periods 4\nnr_throttled 2\n"})
	q, err := openQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var got readings
	if err := q.read(time.Second, &got); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.mount, "app/cpu.stat"), "usage_usec 9000000\nnr_periods 4\nnr_throttled 2\n")
	if err := q.read(8*time.Second, &got); err != nil || got[Quota] != 0.5 || got[Throttled] != 0 {
		t.Errorf("8 s of 2 processors in 8 s: %v used, %v throttled, %v; want 0.5 and 0", got[Quota], got[Throttled], err)
	}
	write(t, filepath.Join(c.mount, "app/cpu.max"), "max 100000\n")
	write(t, filepath.Join(c.mount, "app/cpu.stat"), "usage_usec 10000000\nnr_periods 8\nnr_throttled 3\n")
	if err := q.read(time.Second, &got); err != nil || !math.IsNaN(got[Quota]) || got[Throttled] != 0.25 {
		t.Errorf("without a quota: %v used, %v throttled, %v", got[Quota], got[Throttled], err)
	}
}

// Memory that was given back to the system is not held.
func TestMemoryThatWasGivenBack(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	m, err := openMemory(tree(t, "0::/\n", map[string]string{"memory.max": "549755813888\n"}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ballast := make([]byte, 256<<20) // never touched
	runtime.KeepAlive(ballast)
	debug.FreeOSMemory()
	var got readings
	if err := m.read(0, &got); err != nil {
		t.Fatal(err)
	}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	if held, want := got[Memory]*(1<<39), float64(s.Sys-s.HeapReleased); math.Abs(held-want) > 64<<20 {
		t.Errorf("%.0f bytes are held, want %.0f", held, want)
	}
}
