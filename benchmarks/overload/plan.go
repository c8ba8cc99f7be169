package main

import (
	"cmp"
	"slices"
	"time"
)

const (
	calmLoad   = 0.5
	settle     = 400 * time.Millisecond
	pause      = 500 * time.Millisecond
	longPause  = 1500 * time.Millisecond // enough to see a recovery
	shortSurge = 2500 * time.Millisecond
)

// A plan is what is offered to one server.
type plan struct {
	load     []stretch
	steps    []int // which stretches are columns of the table
	surge    int   // which is the sudden highest load, -1 for none
	recovery int   // which comes at the end
}

// newPlan offers the loads that the server can bear, then out of the calm the
// highest of all, to a server that has never seen overload. Only after that come
// the others, so that what takes long to react has done so, each after a rest. Of
// each stretch the last part is measured, for the length of step.
func newPlan(loads []float64, step, surge, rest time.Duration) *plan {
	loads = slices.Compact(slices.Sorted(slices.Values(loads)))
	over, _ := slices.BinarySearchFunc(loads, 1, cmp.Compare[float64])
	p := &plan{surge: -1}
	for _, load := range loads[:over] {
		p.measure(load, settle+step, step)
	}
	if over == len(loads) {
		return p
	}
	p.calm(pause)
	p.surge = p.measure(loads[len(loads)-1], surge, step)
	for _, load := range loads[over : len(loads)-1] {
		if rest > 0 {
			p.calm(rest)
		}
		p.measure(load, settle+step, step)
	}
	p.recovery = p.calm(longPause)
	return p
}

func (p *plan) measure(load float64, length, step time.Duration) int {
	p.load = append(p.load, stretch{load: load, length: length, settle: length - step})
	p.steps = append(p.steps, len(p.load)-1)
	return len(p.load) - 1
}

func (p *plan) calm(length time.Duration) int {
	p.load = append(p.load, stretch{load: calmLoad, length: length})
	return len(p.load) - 1
}
