package main

import (
	"math"
	"slices"
	"time"
)

// A Result is what one scenario has shown with one number of tasks. All but Measured is the same in
// each run.
type Result struct {
	Scenario string     `json:"scenario"`
	Tasks    int        `json:"tasks"`
	Spans    []Measured `json:"spans,omitempty"`
	Fenced   int        `json:"fenced,omitempty"`   // publications that were rejected
	Rejected int        `json:"rejected,omitempty"` // calls of the main customer, after 4 s
	Cost     *Cost      `json:"cost,omitempty"`
	Trace    []float64  `json:"trace,omitempty"` // admitted in each 100 ms, in limits
}

// Measured is what was admitted in a span, in limits.
type Measured struct {
	Name  string  `json:"name,omitempty"`
	Mean  float64 `json:"mean"`
	Least float64 `json:"least"` // second
	Most  float64 `json:"most"`
}

// A Cost is that of many customers.
type Cost struct {
	Customers    int     `json:"customers"`
	Spread       int     `json:"spread"`
	Syncs        float64 `json:"syncs_per_s"`
	ReportBytes  float64 `json:"report_bytes"` // of a task, on average
	LevelsBytes  float64 `json:"levels_bytes"` // to a task, in each round trip
	CollectBytes float64 `json:"collected_bytes_per_s"`
	Heavy        float64 `json:"heavy_admitted"` // in limits
	Light        float64 `json:"light_admitted"` // of what is offered
	// Processor times of round trips without the board, medians. Garbage collection is part of them.
	LeaderMS float64 `json:"measured_leader_ms"`
	MemberUS float64 `json:"measured_member_us"`
}

// simulate runs a scenario.
func simulate(s *scenario) (*Result, error) {
	w, err := newWorld(s)
	if err != nil {
		return nil, err
	}
	if w.run(); w.err != nil {
		return nil, w.err
	}
	r := &Result{Scenario: s.Name, Tasks: s.Tasks, Fenced: w.counts.fenced, Rejected: w.counts.rejected}
	trace := w.trace()
	for _, span := range s.Spans {
		r.Spans = append(r.Spans, measure(trace, span))
	}
	if s.Traced {
		r.Trace = trace
	}
	if s.Customers > 0 {
		r.Cost = w.cost()
	}
	return r, nil
}

// trace is what all tasks have admitted in each window, in limits.
func (w *world) trace() []float64 {
	all := make([]float64, w.End/window)
	for i := range all {
		for _, k := range w.tasks {
			all[i] += k.admitted[i]
		}
		all[i] = round(all[i] / window.Seconds() / w.Limit)
	}
	return all
}

// measure returns the mean of a span, and its extreme seconds.
func measure(trace []float64, s span) Measured {
	mean := func(from, to time.Duration) (sum float64) {
		for _, x := range trace[from/window : to/window] {
			sum += x
		}
		return round(sum / float64((to-from)/window))
	}
	m := Measured{Name: s.Name, Mean: mean(s.From, s.To), Least: math.Inf(1)}
	for from := s.From; from+second <= s.To; from += window {
		x := mean(from, from+second)
		m.Least, m.Most = min(m.Least, x), max(m.Most, x)
	}
	return m
}

// cost sums up what customers cost.
func (w *world) cost() *Cost {
	c, seconds := &w.counts, (w.End - warmUp).Seconds()
	return &Cost{
		Customers: w.Customers, Spread: w.Spread, Syncs: round(float64(c.syncs) / seconds),
		ReportBytes: round(c.reports / float64(c.syncs)), LevelsBytes: round(c.levels / float64(c.syncs)),
		CollectBytes: round(c.collected / seconds),
		Heavy:        round(c.heavyAdmitted / seconds / heavy / otherLimit), Light: round(c.lightAdmitted / c.lightOffered),
		LeaderMS: round(median(c.leaders) / 1000), MemberUS: round(median(c.members)),
	}
}

// warmUp is the time at the begin that a Cost leaves out: bursts of customers that were idle are paid back.
const warmUp = 14 * second

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// round keeps four digits.
func round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-3)
	if unit < 1 {
		return math.Round(x*math.Round(1/unit)) / math.Round(1/unit)
	}
	return math.Round(x/unit) * unit
}
