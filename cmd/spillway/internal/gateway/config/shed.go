package config

import (
	"time"

	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/shed"
)

// Shed is shed.Config, and the load that it uses.
type Shed struct {
	Mode        Mode           `yaml:"mode" jsonschema_description:"off, observe or enforce; the default of a batch cluster is off."`
	MaxWait     time.Duration  `yaml:"max_wait" jsonschema_description:"Longest wait before a refusal; 0 is 60ms."`
	MinInFlight int            `yaml:"min_in_flight" jsonschema_description:"Least value of the adaptive limits on requests at work; 0 is 1."`
	MaxInFlight int            `yaml:"max_in_flight" jsonschema_description:"Most requests at work at once, over all routes; 0 is no bound but the adaptive limits."`
	MaxByKey    map[string]int `yaml:"max_by_key" jsonschema_description:"Most requests at work at once of single routes, to cap streams apart from quick calls. The key of a route is its cluster, a colon and a space, host and path, and the methods: web: example.com/stream GET,POST. Without host and path it is the cluster alone."`
	Thresholds  Classes        `yaml:"thresholds" jsonschema_description:"Utilization from which each class begins to be rejected; all of it is 0.05 above. They ascend by 0.05 at least. All 0 is 0.8, 0.87, 0.95 and 1."`
	Load        Load           `yaml:"load" jsonschema_description:"How the utilization of this process is measured."`
}

// Load is load.Config.
type Load struct {
	Targets    LoadTargets        `yaml:"targets" jsonschema_description:"Values at which a measure has the utilization 1. Measures without one are only reported."`
	Thresholds map[string]Classes `yaml:"thresholds" jsonschema_description:"Thresholds of single measures by class, in the unit of the measure, in place of a target: executor, cpu, quota, throttled, memory, scheduling or queue."`
	Combine    string             `yaml:"combine" jsonschema_description:"How shares of targets make one utilization: max, the default, or a formula such as max(memory, 0.7*cpu + 0.3*executor), of the names of measures, numbers, + - * / and max(), min()."`
	Smoothing  time.Duration      `yaml:"smoothing" jsonschema_description:"Time constant of the executor load average; 0 is 1s."`
}

// LoadTargets are load.Targets.
type LoadTargets struct {
	Executor   float64       `yaml:"executor" jsonschema_description:"Executor load average: running and runnable goroutines for each processor, smoothed."`
	CPU        float64       `yaml:"cpu" jsonschema_description:"Share of the processors that this process uses."`
	Quota      float64       `yaml:"quota" jsonschema_description:"Share of the cgroup's quota of processor time."`
	Throttled  float64       `yaml:"throttled" jsonschema_description:"Share of the periods in which the cgroup ran out of its quota."`
	Memory     float64       `yaml:"memory" jsonschema_description:"Share of the memory limit; 0 is 0.95, negative is none."`
	Scheduling time.Duration `yaml:"scheduling" jsonschema_description:"Wait of goroutines for a processor, 99th percentile."`
	Queue      time.Duration `yaml:"queue" jsonschema_description:"Longest wait for admission."`
}

// config converts x. Check has found it good.
func (x *Shed) config() (shed.Config, load.Config) {
	l := load.Config{
		Smoothing: x.Load.Smoothing,
		Targets: load.Targets{
			Average: x.Load.Targets.Executor, CPU: x.Load.Targets.CPU, Quota: x.Load.Targets.Quota, Throttled: x.Load.Targets.Throttled,
			Memory: x.Load.Targets.Memory, Scheduling: x.Load.Targets.Scheduling, Queue: x.Load.Targets.Queue,
		},
	}
	for name, c := range x.Load.Thresholds {
		if l.Thresholds == nil {
			l.Thresholds = make(map[string]load.Thresholds, len(x.Load.Thresholds))
		}
		l.Thresholds[name] = c.array()
	}
	if f, err := parseCombination(x.Load.Combine); err == nil {
		l.Combine = f
	}
	return shed.Config{MaxWait: x.MaxWait, Thresholds: x.Thresholds.array()}, l
}

// limits are the operator's bounds of the adaptive limits.
func (x *Shed) limits() concurrency.Config {
	return concurrency.Config{Min: x.MinInFlight, Max: x.MaxInFlight, MaxByKey: x.MaxByKey}
}

// shed checks the shedder and its load.
func (k *checker) shed(at string, x *Shed) {
	k.mode(at+".mode", x.Mode)
	if x.MinInFlight < 0 || x.MinInFlight > 1e6 {
		k.failf(at+".min_in_flight", "is %d, must be 0 to 1000000", x.MinInFlight)
	}
	if x.MaxInFlight < 0 || x.MaxInFlight > 0 && x.MaxInFlight < x.MinInFlight {
		k.failf(at+".max_in_flight", "is %d, must be 0 or at least min_in_flight", x.MaxInFlight)
	}
	s, l := x.config()
	_, err := shed.New(s)
	k.policy(at, err)
	if _, err := parseCombination(x.Load.Combine); err != nil {
		k.failf(at+".load.combine", "%v", err)
	}
	m, err := load.New(l)
	if err != nil {
		k.policy(at+".load", err)
		return
	}
	_ = m.Close() // it was only tried
}
