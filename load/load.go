package load

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Signal is a measure that the user adds.
type Signal struct {
	// Name is the name in [Stats]. It must not be empty.
	Name string
	// Read returns the value as a share of its target: at 1 the process is as busy as it should be.
	// NaN means that the value is unknown now. The Meter calls Read once per interval, on the path
	// of a request and under its lock: Read must be quick, and must not call the Meter. Two calls
	// never overlap.
	Read func() float64
}

// Config configures a [Meter]. The zero Config is ready for use.
type Config struct {
	// Interval is the least time between two samples. With a shorter interval, changes are seen
	// sooner, and sampling costs more. Zero means 100 ms; it must be 10 ms to 10 s.
	Interval time.Duration
	// Smoothing is the time constant of the executor load average. Zero means 1 s; it must be 10 ms
	// to 1 min.
	Smoothing time.Duration
	// Targets are the targets of the built-in measures.
	Targets Targets
	// Signals are further measures.
	Signals []Signal

	// Thresholds replace the target of a measure by a threshold for each criticality. The keys are
	// the names of [Measure.String] and of Signals.
	Thresholds map[string]Thresholds
	// Reference gives the utilization at each of the Thresholds. If a measure is at its threshold
	// for a class, its share is the value of Reference for that class. Zero means 0.80, 0.87, 0.95
	// and 1, the defaults of package shed; package ingress sets the thresholds of its shedder.
	Reference Thresholds
	// Combine returns the utilization from all known readings, those of Signals last. Zero,
	// negative and NaN mean no load, and infinity means the largest float32. The rules for
	// Signal.Read hold for Combine, too; it must not keep the slice. Nil means the greatest Share.
	Combine func(readings []Reading) float64
}

func (c Config) withDefaults() (Config, error) {
	if c.Interval == 0 {
		c.Interval = 100 * time.Millisecond
	}
	if c.Smoothing == 0 {
		c.Smoothing = time.Second
	}
	if c.Interval < 10*time.Millisecond || c.Interval > 10*time.Second {
		return c, invalid.Field("load", "Interval", c.Interval, "10ms to 10s")
	}
	if c.Smoothing < 10*time.Millisecond || c.Smoothing > time.Minute {
		return c, invalid.Field("load", "Smoothing", c.Smoothing, "10ms to 1m")
	}
	for i, s := range c.Signals {
		if s.Name == "" || s.Read == nil {
			return c, invalid.Field("load", fmt.Sprintf("Signals[%d]", i), s.Name, "a signal with a Name and a Read")
		}
	}
	c.Signals, c.Thresholds = slices.Clone(c.Signals), maps.Clone(c.Thresholds)
	return c, c.checkCombination()
}

// A Meter reads the measures. It is safe for concurrent use. Make one with [New], and close it
// after its last use.
type Meter struct {
	executor *executor
	combined atomic.Uint64 // bits of the utilization, a float64
	cpu      atomic.Uint64 // bits of the measure CPU, a float64
	seen     atomic.Int64  // last sample, in ns since 1970; needs no lock
	interval atomic.Int64  // Config.Interval
	short    atomic.Bool   // see ShortOfMemory

	mu      sync.Mutex // held while sampling
	config  Config
	targets readings
	sources []source
	values  readings
	signals []float64
	known   []Reading // of the last sample
	missing []error
	last    time.Time
	waited  time.Duration // longest wait for admission since the last sample
}

// A source reads some measures. d is the time since its last read.
type source interface {
	read(d time.Duration, into *readings) error
	measures() []Measure
	io.Closer
}

// New returns a Meter. An error names the field of c that is out of range. A missing source is no
// error: see [Meter.Missing].
func New(c Config) (*Meter, error) { return newMeter(c, system) }

func newMeter(c Config, groups cgroups) (*Meter, error) {
	m := new(Meter)
	if err := m.Update(c); err != nil {
		return nil, err
	}
	m.executor = newExecutor(m.config.Smoothing)
	for i := range m.values {
		m.values[i] = math.NaN()
	}
	m.add(openProcess(m.executor))
	m.add(openQuota(groups))
	m.add(openMemory(groups))
	m.add(openScheduling())
	return m, nil
}

func (m *Meter) add(s source, err error) {
	if err != nil {
		m.missing = append(m.missing, fmt.Errorf("load: %w", err))
		return
	}
	m.sources = append(m.sources, s)
}

// Update changes the configuration of a Meter in use. An error names the field that is out of
// range, and nothing has changed then.
func (m *Meter) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	targets, err := c.Targets.withDefaults()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config, m.targets, m.signals = c, targets, make([]float64, len(c.Signals))
	m.interval.Store(int64(c.Interval))
	if m.executor != nil {
		m.executor.setSmoothing(c.Smoothing)
	}
	return nil
}

// Missing returns an error for each source that does not exist or has failed. Its measures are left
// out. This is no failure; a server may log it once at its start.
func (m *Meter) Missing() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.missing)
}

// Close closes the files that the Meter has open. Measures that need them are left out from then
// on.
func (m *Meter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []error
	for _, s := range m.sources {
		all = append(all, s.Close())
		m.forget(s)
	}
	m.sources = nil
	return errors.Join(all...)
}

func (m *Meter) forget(s source) {
	for _, measure := range s.measures() {
		m.values[measure] = math.NaN()
	}
}

// Executor returns the state of the Go scheduler at the time now. It allocates nothing and never
// waits. It takes about 150 ns, and less within 20 µs of the last call.
func (m *Meter) Executor(now time.Time) Executor { return m.executor.at(now) }

// Refresh makes Executor return the state of the scheduler at the time now, even if it was read
// less than 20 µs ago. It is for a caller that knows that the state has changed since.
func (m *Meter) Refresh(now time.Time) { m.executor.refresh(now) }

// Utilization returns how busy the process is, by [Config.Combine]. Without Combine it is the
// greatest share that any measure has of its target: at 1 a target is reached. It is 0 if no
// measure has a target. If the last sample is one interval old, Utilization samples. It allocates
// nothing, and does not wait while another goroutine samples.
func (m *Meter) Utilization(now time.Time) float64 {
	m.trySample(now)
	return math.Float64frombits(m.combined.Load())
}

func (m *Meter) trySample(now time.Time) {
	if !within(now, &m.seen, time.Duration(m.interval.Load())) && m.mu.TryLock() {
		defer m.mu.Unlock() // a Signal may panic
		m.sample(now)
	}
}

// CPU returns the share of the processors' time that the process used in the last interval, 0 to 1;
// 0 if it is unknown. It does not sample.
func (m *Meter) CPU() float64 { return math.Float64frombits(m.cpu.Load()) }

// ShortOfMemory reports whether memory had reached the lowest threshold in the last sample. A part
// of the memory may be garbage: a process that rejects its requests allocates so little that the
// runtime may not collect garbage for two minutes. ShortOfMemory does not sample.
func (m *Meter) ShortOfMemory() bool { return m.short.Load() }

// Waited records how long a request has waited to be admitted.
func (m *Meter) Waited(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waited = max(m.waited, d)
}

// sample reads all measures if the last sample is one interval old. The caller holds m.mu.
func (m *Meter) sample(now time.Time) {
	d := now.Sub(m.last)
	if d < m.config.Interval {
		return
	}
	m.last = now
	m.seen.Store(now.UnixNano())
	m.executor.at(now)
	m.values[Average] = m.executor.load()
	m.values[Queue], m.waited = m.waited.Seconds(), 0
	m.sources = slices.DeleteFunc(m.sources, func(s source) bool { return m.failed(s, d) })
	for i, s := range m.config.Signals {
		m.signals[i] = s.Read()
	}
	m.combined.Store(math.Float64bits(m.combine()))
	memory := m.reading(Memory.String(), m.values[Memory], m.targets[Memory])
	m.short.Store(memory.Share >= m.config.Reference[0])
	m.cpu.Store(math.Float64bits(orZero(m.values[CPU])))
}

// failed reads s, and reports whether that failed. If so, s is closed.
func (m *Meter) failed(s source, d time.Duration) bool {
	err := s.read(d, &m.values)
	if err == nil {
		return false
	}
	m.missing = append(m.missing, err)
	m.forget(s)
	s.Close()
	return true
}

// orZero returns v, or 0 for NaN.
func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// Stats is the state of a process.
type Stats struct {
	Executor    Executor
	Utilization float64
	// Readings are all known measures, those of Signals last.
	Readings []Reading
}

// A Reading is the value of one measure.
type Reading struct {
	Name string
	// Value and Target are in the unit of the measure. For a measure with Thresholds, Target is the
	// highest of them. Target is 0 for a measure that is only reported.
	Value, Target float64
	// Share is the utilization by this measure alone: 1 at the Target, 0 without one.
	Share float64
}

// Stats returns the measures at the time now. It samples if the last sample is one interval old.
func (m *Meter) Stats(now time.Time) Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sample(now)
	s := Stats{Executor: m.executor.at(now), Utilization: math.Float64frombits(m.combined.Load())}
	s.Readings = slices.Clone(m.readings())
	return s
}
