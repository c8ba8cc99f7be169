package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// page is the file with all tables.
const page = "docs/benchmarks.md"

// noRecord stands in place of a table whose figures were all disturbed.
const noRecord = "There is no record of a quiet machine yet."

// A table stands in a README between these. The package is that of the table.
const (
	beginTable = "<!-- benchmarks of "
	endMarker  = " -->"
	endTable   = "<!-- end of benchmarks -->"
)

// writePages writes what the records have into the pages.
func writePages(root string) error {
	files, err := pages(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages returns what each page should be.
func pages(root string) (map[string][]byte, error) {
	records, err := readAll(root)
	if err != nil {
		return nil, err
	}
	packages := newest(records)
	all := map[string][]byte{page: wholePage(packages)}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "dist" || strings.HasPrefix(entry.Name(), ".") && name != root):
			return filepath.SkipDir
		case entry.Name() != "README.md":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(beginTable)) {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		filled, err := fill(string(text), packages)
		all[relative] = []byte(filled)
		if err != nil {
			err = fmt.Errorf("%s: %w", relative, err)
		}
		return err
	})
	return all, err
}

// fill returns text with the tables that its markers ask for.
func fill(text string, packages []shown) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, beginTable)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, named := strings.Cut(rest, endMarker)
		_, after, ended := strings.Cut(rest, endTable)
		if !named || !ended {
			return "", fmt.Errorf("%q has no %q after it", beginTable+name, endTable)
		}
		fmt.Fprintf(&b, "%s%s%s\n\n%s\n%s", beginTable, name, endMarker, tableOf(name, packages), endTable)
		text = after
	}
}

func tableOf(name string, packages []shown) string {
	for _, p := range packages {
		if p.name == name {
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n\n", conditions(p.record))
			writeTable(&b, p)
			return b.String()
		}
	}
	return noRecord
}

// wholePage has all packages, by record.
func wholePage(packages []shown) []byte {
	var b strings.Builder
	b.WriteString(`# Benchmarks on record

This page is generated from the newest record of each package in [benchmarks/records](../benchmarks/records) that was made on a quiet machine. Do not edit it:

` + "```sh" + `
make bench-record RECORD=name     # run, record, and write this page and the tables in README files
go run ./benchmarks/record pages  # write the pages again
` + "```" + `

The time is a median with its confidence interval of 95 %, and the fastest run. Compare figures of one record only; to compare two versions of the code,
run both in turns (see [performance.md](performance.md)). The tables of ` + "`benchmarks`" + ` put other libraries beside Spillway;
the ratio is that of the fastest runs.
`)
	if len(packages) == 0 {
		fmt.Fprintf(&b, "\n%s\n", noRecord)
	}
	var last *Record
	for _, p := range packages {
		if p.record != last {
			fmt.Fprintf(&b, "\n%s\n", conditions(p.record))
			last = p.record
		}
		fmt.Fprintf(&b, "\n## %s\n\n", p.name)
		writeTable(&b, p)
	}
	return []byte(b.String())
}

// conditions says where a record was made.
func conditions(r *Record) string {
	var b strings.Builder
	changed := ""
	if r.Modified {
		changed = " with local changes"
	}
	fmt.Fprintf(&b, "Record `%s`, %s: commit %.12s%s, %s, %s/%s, %s, %d processors, GOMAXPROCS %d; %d runs of %s.", r.Name,
		r.Time.Format("2 January 2006"), r.Commit, changed, r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Machine.CPU,
		r.Machine.Processors, r.Machine.GOMAXPROCS, r.Count, r.BenchTime)
	if r.CPUPressure == nil {
		b.WriteString(" How busy the machine was is not known.")
	}
	return b.String()
}

// writeTable writes the table of a package: a comparison if its benchmarks have implementations.
func writeTable(b *strings.Builder, p shown) {
	if all := p.benchmarks(); strings.Contains(all[0].Name, "/impl=") {
		writeComparison(b, all)
		return
	}
	b.WriteString("| benchmark | ns/op | | fastest | B/op | allocs/op |\n|---|--:|--:|--:|--:|--:|\n")
	for _, x := range p.benchmarks() {
		bytes, allocs := number(x.Units["B/op"].Median), number(x.Units["allocs/op"].Median)
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", x.Name, x.Units["ns/op"].cells(), bytes, allocs)
	}
}

// writeComparison writes rows of implementations. The first of each benchmark is ours.
func writeComparison(b *strings.Builder, all []Benchmark) {
	b.WriteString("| benchmark | | ns/op | | fastest | ratio | allocs/op |\n|---|---|--:|--:|--:|--:|--:|\n")
	last, ours := "", 0.0
	for _, x := range all {
		name, impl, _ := strings.Cut(x.Name, "/impl=")
		t, title := x.Units["ns/op"], ""
		if name != last {
			last, title, ours = name, name, t.Least
		}
		fmt.Fprintf(b, "| %s | %s | %s | %.2f | %s |\n", title, impl, t.cells(), t.Least/ours, number(x.Units["allocs/op"].Median))
	}
}

// cells are a median in a table: itself, its spread, and the fastest run.
func (m Median) cells() string {
	return number(m.Median) + " | " + m.spread() + " | " + number(m.Least)
}

// number has three digits, or all before the point.
func number(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
