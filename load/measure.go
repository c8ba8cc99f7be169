package load

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Measure is one of the built-in measures.
type Measure uint8

// These are the built-in measures, as the package comment describes them. Times are in seconds.
const (
	Average    Measure = iota // executor load average, in goroutines per processor
	CPU                       // processor time of the process, as a share of GOMAXPROCS
	Quota                     // processor time of the cgroup, as a share of its quota
	Throttled                 // share of periods in which the cgroup used up its quota
	Memory                    // memory, as a share of the limit
	Scheduling                // wait for a processor, in seconds
	Queue                     // wait for admission, in seconds
	Measures   = iota         // number of measures
)

var measureNames = [Measures]string{"executor", "cpu", "quota", "throttled", "memory", "scheduling", "queue"}

// targetFields are the names of the fields of [Targets], by measure.
var targetFields = [Measures]string{"Average", "CPU", "Quota", "Throttled", "Memory", "Scheduling", "Queue"}

// String returns the name of m in lower case.
func (m Measure) String() string {
	if int(m) >= len(measureNames) {
		return fmt.Sprintf("Measure(%d)", uint8(m))
	}
	return measureNames[m]
}

// most returns the highest value that is allowed as a target of m, and the allowed range as text. A
// share that is given as a percentage would never be reached.
func (m Measure) most() (value float64, allowed string) {
	if m >= CPU && m <= Memory {
		return 1, "0 to 1"
	}
	return math.MaxFloat32, "0 or more"
}

// readings has a value for each measure; NaN means unknown.
type readings [Measures]float64

// DefaultMemoryTarget is the target of memory if none is set.
const DefaultMemoryTarget = 0.95

// Targets are the values that the measures should not exceed. Zero means that the measure is only
// reported, except for Memory.
type Targets struct {
	// Average is in goroutines per processor.
	Average float64
	// CPU is a share of GOMAXPROCS, Quota a share of the cgroup's quota, and Throttled a share of
	// its periods. Each must be at most 1.
	CPU, Quota, Throttled float64
	// Memory is a share of the limit. Zero means 0.95 ([DefaultMemoryTarget]). Negative means that
	// memory is only reported. It must be at most 1.
	Memory float64
	// Scheduling is how long goroutines wait for a processor, and Queue how long requests wait for
	// admission.
	Scheduling, Queue time.Duration
}

// withDefaults returns the targets by measure, 0 for none, or an error that names the first bad
// one.
func (t Targets) withDefaults() (readings, error) {
	t.Memory = cmp.Or(t.Memory, DefaultMemoryTarget)
	all := readings{
		Average: t.Average, CPU: t.CPU, Quota: t.Quota, Throttled: t.Throttled,
		Memory: max(t.Memory, 0), Scheduling: t.Scheduling.Seconds(), Queue: t.Queue.Seconds(),
	}
	for m, v := range all {
		if most, allowed := Measure(m).most(); !(v >= 0 && v <= most) {
			return all, invalid.Field("load", "Targets."+targetFields[m], v, "%s", allowed)
		}
	}
	return all, nil
}
