package load

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Measure is one of the measures built in.
type Measure uint8

// The measures. The package comment says what each means; times are in seconds.
const (
	Average    Measure = iota // executor load average
	CPU                       // processor time of the process
	Quota                     // processor time of the cgroup
	Throttled                 // periods in which the cgroup ran out of it
	Memory                    // of the limit
	Scheduling                // wait for a processor
	Queue                     // wait for admission
	Measures   = iota         // how many there are
)

var measureNames = [Measures]string{"executor", "cpu", "quota", "throttled", "memory", "scheduling", "queue"}

// targetFields are the fields of [Targets].
var targetFields = [Measures]string{"Average", "CPU", "Quota", "Throttled", "Memory", "Scheduling", "Queue"}

// String returns the name of m in lower case.
func (m Measure) String() string {
	if int(m) >= len(measureNames) {
		return fmt.Sprintf("Measure(%d)", uint8(m))
	}
	return measureNames[m]
}

// most returns the highest value of m that makes sense as a target, and its range in words: a share that is
// given as a percentage would never be reached.
func (m Measure) most() (value float64, allowed string) {
	if m >= CPU && m <= Memory {
		return 1, "0 to 1"
	}
	return math.MaxFloat32, "0 or more"
}

// readings holds a value for each measure, NaN where it is unknown.
type readings [Measures]float64

// DefaultMemoryTarget is the target of memory where none is set.
const DefaultMemoryTarget = 0.95

// Targets are what the measures should be at most. A zero target means that the
// measure is reported only, except where it says otherwise.
type Targets struct {
	// Average is in goroutines per processor.
	Average float64
	// CPU is a share of GOMAXPROCS, Quota one of the cgroup's quota, and
	// Throttled one of its periods. Each must be at most 1.
	CPU, Quota, Throttled float64
	// Memory is a share of the limit. Zero means 0.95 ([DefaultMemoryTarget]); negative
	// means that memory is reported only; it must be at most 1.
	Memory float64
	// Scheduling is how long goroutines wait, and Queue how long requests do.
	Scheduling, Queue time.Duration
}

// withDefaults returns the targets by measure, 0 where it is not set, or an
// error that names the first bad one.
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
