package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// A Result is everything that runs measured. The tables are written from it and
// from nothing else.
type Result struct {
	Started time.Time           `json:"started"`
	Machine machine.Description `json:"machine"`
	Seed    uint64              `json:"seed"`
	Rows    []Row               `json:"rows"`
}

// A Row is one front before one kind of server on one wire.
type Row struct {
	Backend      string  `json:"backend"`
	Wire         string  `json:"wire"`
	Procs        int     `json:"procs"`
	SlowAcceptMS float64 `json:"slow_accept_ms,omitempty"`
	Front        string  `json:"front"`
	CapacityRPS  float64 `json:"capacity_rps"` // with nothing before the handler: the mean of right before and right after
	CallUS       float64 `json:"call_us"`      // processor time of the server for a call that it serves, likewise
	// RejectionUS is the processor time of the server for a call that it rejects, when it
	// rejects all; null: not measured.
	RejectionUS *float64 `json:"rejection_us"`
	DeadlineMS  float64  `json:"deadline_ms"`
	// Steps has one for each load.
	Steps []Step `json:"steps"`
	// ReactionS is how long after a sudden step from the calm to the highest load
	// the server came to what it can do, and RecoveryS how long after the last of all
	// loads, back to the calm; null: not while they lasted.
	ReactionS      *float64 `json:"reaction_s"`
	ReactionWithin float64  `json:"reaction_within_s"`
	RecoveryS      *float64 `json:"recovery_s"`
	RecoveryWithin float64  `json:"recovery_within_s"`
	// WholeMachine says why a front that reads the CPU use of its container was
	// shown that of the machine.
	WholeMachine  string   `json:"whole_machine,omitempty"`
	LatenessP99MS float64  `json:"lateness_p99_ms"`
	CPUPressure   *float64 `json:"cpu_pressure"`
}

// add fills r in from what was measured in p.
func (r *Row) add(p *plan, measured *outcomes) {
	r.LatenessP99MS, r.CPUPressure = measured.latenessP99MS, measured.pressure
	for _, i := range p.steps {
		r.Steps = append(r.Steps, measured.steps[i])
	}
	if p.surge >= 0 {
		r.ReactionS, r.ReactionWithin = measured.steps[p.surge].ReadyS, p.load[p.surge].length.Seconds()
		r.RecoveryS, r.RecoveryWithin = measured.steps[p.recovery].ReadyS, p.load[p.recovery].length.Seconds()
	}
}

// counted says what the capacity was before and after. The load was counted in the
// first; the goodput is, from then on, in the mean.
func (r *Row) counted(before, after float64) {
	r.CapacityRPS = (before + after) / 2
	for i := range r.Steps {
		r.Steps[i].GoodputRatio *= before / r.CapacityRPS
	}
}

// highest returns the step of the highest load.
func (r *Row) highest() (step Step, ok bool) {
	for i := range r.Steps {
		if !ok || r.Steps[i].Load > step.Load {
			step, ok = r.Steps[i], true
		}
	}
	return step, ok
}

// line is the goodput ratio at a load where every rejection takes its processor time from the
// calls that are served: 1 - (load-1)·r/s.
func (r *Row) line(load float64) float64 { return max(0, 1-(load-1)**r.RejectionUS/r.CallUS) }

// progress is r in a line of progress.
func (r *Row) progress() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%-12s", r.Front)
	for i := range r.Steps {
		fmt.Fprintf(&s, "  %g C %.1f %%", r.Steps[i].Load, 100*r.Steps[i].GoodputRatio)
	}
	if r.RejectionUS != nil {
		fmt.Fprintf(&s, "  rejection %.1f µs", *r.RejectionUS)
	}
	return s.String()
}

// tableCommand prints what several runs wrote as if one had.
type tableCommand struct {
	File []string `arg:"" help:"What --json of earlier runs wrote."`
}

func (t *tableCommand) run(stdout io.Writer) error {
	var all Result
	for _, name := range t.File {
		one, err := read(name)
		if err != nil {
			return usage{err}
		}
		all.Rows = append(all.Rows, one.Rows...)
	}
	return all.writeTables(stdout)
}

func read(name string) (*Result, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func (r *Result) write(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	e := json.NewEncoder(file)
	e.SetIndent("", "\t")
	return errors.Join(e.Encode(r), file.Close())
}
