package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
)

// A Result is everything that runs measured. The tables are written from it and
// from nothing else.
type Result struct {
	Started time.Time `json:"started"`
	Seed    uint64    `json:"seed"`
	Rows    []Row     `json:"rows"`
}

// A Row is one front before one kind of server.
type Row struct {
	Backend     string  `json:"backend"`
	Procs       int     `json:"procs"`
	Front       string  `json:"front"`
	CapacityRPS float64 `json:"capacity_rps"` // with nothing before the handler: the mean of right before and right after
	DeadlineMS  float64 `json:"deadline_ms"`
	// Steps has one for each load.
	Steps []drill.StretchResult `json:"steps"`
	// ReactionS is how long after a sudden step from the calm to the highest load
	// the server came to what it can do, and RecoveryS how long after the last of all
	// loads, back to the calm; null: not while they lasted. See [drill.StretchResult].
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

// add fills r in from what came of p.
func (r *Row) add(p *plan, result *drill.TrialResult) {
	r.LatenessP99MS, r.CPUPressure = result.LatenessP99MS, result.CPUPressure
	for _, i := range p.steps {
		r.Steps = append(r.Steps, result.Stretches[i])
	}
	if p.surge >= 0 {
		r.ReactionS, r.ReactionWithin = result.Stretches[p.surge].ReadyS, p.load[p.surge].Length.Seconds()
		r.RecoveryS, r.RecoveryWithin = result.Stretches[p.recovery].ReadyS, p.load[p.recovery].Length.Seconds()
	}
}

// counted says what the capacity was before and after. The load was counted in the
// first; what came of it is, from then on, in the mean.
func (r *Row) counted(before, after float64) {
	r.CapacityRPS = (before + after) / 2
	for i := range r.Steps {
		r.Steps[i].GoodputRatio *= before / r.CapacityRPS
	}
}

// told is r in a line of progress.
func (r *Row) told() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%-12s", r.Front)
	for i := range r.Steps {
		fmt.Fprintf(&s, "  %g C %.1f %%", r.Steps[i].Load, 100*r.Steps[i].GoodputRatio)
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
