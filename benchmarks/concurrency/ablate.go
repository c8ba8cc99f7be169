package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
)

// ablate prints the change that each constant of ours makes at half and at double of its
// value: to the mean of the table, and to each row that moves by more than 2 points. More
// than 5 points are marked. Each variant is this command, built with a changed copy of the
// file that declares the constant.
func ablate(w io.Writer, o options) error {
	dir, err := os.MkdirTemp("", "spillway-ablate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system removes what is left
	list, err := ablations(o.ablated())
	if err != nil {
		return err
	}
	base, err := o.build(dir, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%-34s mean %.1f\n", "ours", meanOf(base))
	for _, a := range list {
		if o.constant != "" && a.name() != o.constant {
			continue
		}
		rows, err := o.build(dir, a)
		if err != nil {
			fmt.Fprintf(w, "%-34s not valid: %v\n", a, err)
			continue
		}
		fmt.Fprintf(w, "%-34s mean %.1f (%+.1f)%s\n", a, meanOf(rows), meanOf(rows)-meanOf(base), moved(base, rows))
	}
	return nil
}

// build builds this command with a changed constant, runs it and returns its rows.
func (o options) build(dir string, a *ablation) ([]jsonRow, error) {
	program, table := filepath.Join(dir, "variant"), filepath.Join(dir, "rows.json")
	args := []string{"build", "-o", program}
	if a != nil {
		overlay, err := a.overlay(dir)
		if err != nil {
			return nil, err
		}
		args = append(args, "-overlay", overlay)
	}
	if b, err := exec.Command("go", append(args, command)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, b)
	}
	run := exec.Command(program, "-algorithm", "ours", "-cache", "-json", table, "-scenario", o.scenario,
		"-seeds", fmt.Sprint(o.seeds.n), "-from", fmt.Sprint(o.seeds.from), fmt.Sprint("-processors=", o.processors))
	if b, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, b)
	}
	b, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	var rows []jsonRow
	return rows, json.Unmarshal(b, &rows)
}

func meanOf(rows []jsonRow) (mean float64) {
	for _, r := range rows {
		mean += min(100, r.Algorithms[0].Percent) / float64(len(rows))
	}
	return mean
}

// moved lists the rows that a variant changes.
func moved(base, rows []jsonRow) (list string) {
	for i, r := range rows {
		old, changed := base[i].Algorithms[0], r.Algorithms[0]
		by := min(100, changed.Percent) - min(100, old.Percent)
		rejected := changed.FalseRejections - old.FalseRejections
		mark := ""
		if math.Abs(by) > 5 {
			mark = " !"
		}
		switch {
		case math.Abs(by) > 2:
			list += fmt.Sprintf("; %s %+.1f%s", r.Scenario, by, mark)
		case math.Abs(rejected) > 2 && !r.Overload:
			list += fmt.Sprintf("; %s rejects %+.1f", r.Scenario, rejected)
		}
	}
	return list
}
