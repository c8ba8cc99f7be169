package load

import (
	"errors"
	"math"
	"runtime/metrics"
	"time"
)

// memory compares the memory of the Go runtime with the lower of the runtime's limit and the
// cgroup's.
type memory struct {
	samples [memorySamples]metrics.Sample
	cgroup  *memoryLimits // nil: no cgroup has a limit
}

// These are the values that memory reads from the runtime, in bytes.
const (
	totalBytes = iota
	releasedBytes
	freeBytes
	unusedBytes
	objectBytes // objects on the heap, garbage included
	liveBytes   // objects that the last collection found in use
	limitBytes
	memorySamples = iota
)

var memoryNames = [memorySamples]string{
	totalBytes:    "/memory/classes/total:bytes",
	releasedBytes: "/memory/classes/heap/released:bytes",
	freeBytes:     "/memory/classes/heap/free:bytes",
	unusedBytes:   "/memory/classes/heap/unused:bytes",
	objectBytes:   "/memory/classes/heap/objects:bytes",
	liveBytes:     "/gc/heap/live:bytes",
	limitBytes:    "/gc/gomemlimit:bytes",
}

func openMemory(c cgroups) (source, error) {
	m := new(memory)
	for i, name := range memoryNames {
		m.samples[i].Name = name
	}
	var err error
	if m.cgroup, err = openMemoryLimits(c); err == nil {
		return m, nil
	}
	metrics.Read(m.samples[:])
	if m.bytes(limitBytes) == math.MaxInt64 {
		return nil, errors.Join(errors.New("memory: GOMEMLIMIT is not set"), err)
	}
	return m, nil
}

func (m *memory) read(_ time.Duration, into *readings) error {
	metrics.Read(m.samples[:])
	held, limit := m.bytes(totalBytes)-m.bytes(releasedBytes), m.bytes(limitBytes)
	// The runtime may let garbage grow up to its own limit, and collects it before. So only what is
	// in use counts against that limit.
	counted := held - m.bytes(freeBytes) - m.bytes(unusedBytes) - m.bytes(objectBytes) + m.bytes(liveBytes)
	if m.cgroup != nil {
		l, err := m.cgroup.read()
		if err != nil {
			return err
		}
		if l < limit {
			limit, counted = l, held // nothing else keeps garbage below the limit of the cgroup
		}
	}
	into[Memory] = counted / limit
	if limit >= noLimit { // a limit may be set later
		into[Memory] = math.NaN()
	}
	return nil
}

func (m *memory) bytes(sample int) float64 { return float64(m.samples[sample].Value.Uint64()) }

func (m *memory) measures() []Measure { return []Measure{Memory} }

func (m *memory) Close() error {
	if m.cgroup == nil {
		return nil
	}
	return m.cgroup.Close()
}

// scheduling reads the 99th percentile of the time that goroutines waited for a processor since the
// last sample. The runtime measures one transition in eight.
type scheduling struct {
	samples []metrics.Sample
	before  []uint64
}

func openScheduling() (source, error) {
	s := &scheduling{samples: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
	metrics.Read(s.samples)
	if s.samples[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil, errors.New("scheduling: this Go runtime has no /sched/latencies:seconds")
	}
	s.before = make([]uint64, len(s.samples[0].Value.Float64Histogram().Counts))
	return s, nil
}

func (s *scheduling) read(_ time.Duration, into *readings) error {
	metrics.Read(s.samples)
	h := s.samples[0].Value.Float64Histogram()
	into[Scheduling] = quantile(h, s.before, 0.99)
	copy(s.before, h.Counts)
	return nil
}

func (s *scheduling) measures() []Measure { return []Measure{Scheduling} }

func (s *scheduling) Close() error { return nil }

// quantile returns the q-th quantile of what h has counted since before: the upper bound of its
// bucket, or the lower bound if the upper one is infinite. It is 0 if nothing was counted.
func quantile(h *metrics.Float64Histogram, before []uint64, q float64) float64 {
	var total, sum uint64
	for i, n := range h.Counts {
		total += n - before[i]
	}
	if total == 0 {
		return 0
	}
	for i, n := range h.Counts {
		if sum += n - before[i]; float64(sum) >= q*float64(total) {
			if upper := h.Buckets[i+1]; !math.IsInf(upper, 1) {
				return upper
			}
			return h.Buckets[i]
		}
	}
	return 0
}
