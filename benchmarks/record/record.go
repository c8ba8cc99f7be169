package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// directory has the records, below the root of the repository.
const directory = "benchmarks/records"

// A Record is what one run of benchmarks measured, and where.
type Record struct {
	Name     string              `json:"name"`
	Time     time.Time           `json:"time"`
	Commit   string              `json:"commit"`
	Modified bool                `json:"modified"` // there were changes that the commit does not have
	Machine  machine.Description `json:"machine"`
	// CPUPressure is the share of the run in which a thread of the machine was ready to run and
	// had no processor; null where that is not known.
	CPUPressure *float64    `json:"cpu_pressure"`
	Count       int         `json:"count"` // runs of each benchmark, one after the other
	BenchTime   string      `json:"benchtime"`
	Benchmarks  []Benchmark `json:"benchmarks"`
}

// A Benchmark is what one benchmark measured.
type Benchmark struct {
	Package string            `json:"package"` // below the root of the repository
	Name    string            `json:"name"`
	Units   map[string]Median `json:"units"` // by unit, such as ns/op
}

// A Median is that of all runs, with its confidence interval of 95 %, and the least of the runs.
type Median struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Least  float64 `json:"least"`
}

// spread is how far the interval reaches, such as "± 3%".
func (m Median) spread() string {
	s := benchmath.Summary{Center: m.Median, Lo: m.Low, Hi: m.High}
	return "± " + s.PctRangeString()
}

// busyPressure is the pressure above which the machine was too busy: the benchmarks alone
// cause less.
const busyPressure = 0.15

// busy reports whether other processes took part in what was measured.
func (r *Record) busy() bool { return r.CPUPressure != nil && *r.CPUPressure > busyPressure }

// write writes r to its file, a line for each benchmark.
func (r *Record) write(root string) error {
	if r.Name == "" || strings.ContainsAny(r.Name, `/\.`) {
		return fmt.Errorf("the name of a record is %q, must be a file name without extension", r.Name)
	}
	head := *r
	head.Benchmarks = nil
	text, err := json.MarshalIndent(head, "", "\t")
	if err != nil {
		return err
	}
	lines := make([]string, len(r.Benchmarks))
	for i := range r.Benchmarks {
		line, err := json.Marshal(&r.Benchmarks[i])
		if err != nil {
			return err
		}
		lines[i] = "\t\t" + string(line)
	}
	list := "[\n" + strings.Join(lines, ",\n") + "\n\t]"
	all := strings.Replace(string(text), "\"benchmarks\": null", "\"benchmarks\": "+list, 1) + "\n"
	if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, directory, r.Name+".json"), []byte(all), 0o644)
}

// readAll returns all records, the newest first.
func readAll(root string) ([]*Record, error) {
	files, err := filepath.Glob(filepath.Join(root, directory, "*.json"))
	if err != nil {
		return nil, err
	}
	all := make([]*Record, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all[i] = new(Record)
		if err := json.Unmarshal(text, all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if all[i].Name+".json" != filepath.Base(file) {
			return nil, fmt.Errorf("%s has the record %q", file, all[i].Name)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no records in " + directory)
	}
	slices.SortFunc(all, func(a, b *Record) int { return b.Time.Compare(a.Time) })
	return all, nil
}

// A shown is a package with the newest record that has it.
type shown struct {
	name   string
	record *Record
}

// newest returns all packages that were measured on a quiet machine, the newest record first, in the order of their names.
func newest(records []*Record) []shown {
	var all []shown
	for _, r := range records {
		if r.busy() {
			continue
		}
		for i := range r.Benchmarks {
			name := r.Benchmarks[i].Package
			if !slices.ContainsFunc(all, func(s shown) bool { return s.name == name }) {
				all = append(all, shown{name, r})
			}
		}
	}
	slices.SortFunc(all, func(a, b shown) int {
		return cmp.Or(b.record.Time.Compare(a.record.Time), strings.Compare(a.name, b.name))
	})
	return all
}

// benchmarks returns what the record has of the package.
func (s shown) benchmarks() (all []Benchmark) {
	for _, b := range s.record.Benchmarks {
		if b.Package == s.name {
			all = append(all, b)
		}
	}
	return all
}
