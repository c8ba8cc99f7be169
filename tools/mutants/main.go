// Command mutants tests the tests of packages: it changes one operator at a time, and reports
// the changes that no test of the package notices.
//
// All mutants of a package are compiled into one test binary, where an environment variable
// selects one of them, and each is run by the tests that reach it only. That takes seconds for
// a package, where a build for each mutant takes hours.
//
// Some mutants cannot be killed, as they do the same in another way. The file survivors.txt names
// them with the reason; they are reported and do not count.
//
// The operators are the usual ones: the bound of a comparison, its negation, the
// arithmetic operators, increments, and signs. Constants and declarations of types stay as
// they are.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

func main() {
	least := flag.Float64("least", 95, "percentage that must be killed of the mutants that tests reach, and reached of all")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "number of test processes at a time")
	only := flag.String("run", "", "regular expression of the tests to use")
	which := flag.String("mutants", "", "regular expression of the mutants to run, as they are reported: 'queue.go:1[0-9]:'")
	listed := flag.String("survivors", "tools/mutants/survivors.txt", "file with the mutants that no test can kill")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [flags] directory ...")
		os.Exit(2)
	}
	known, err := readSurvivors(*listed)
	if err != nil {
		fail(err)
	}
	good := true
	for _, dir := range flag.Args() {
		result, err := examine(dir, *only, *which, *workers)
		if err != nil {
			fail(fmt.Errorf("%s: %w", dir, err))
		}
		result.known, result.all = known, *only == "" && *which == ""
		good = result.report(os.Stdout, filepath.Clean(dir), *least) && good
	}
	if !good {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
	os.Exit(1)
}

// report prints what tests did not notice, then one line of figures.
func (r *result) report(out io.Writer, dir string, least float64) bool {
	slices.SortFunc(r.mutants, func(a, b *mutant) int { return cmp.Compare(a.id, b.id) })
	var killed, timedOut, lived, known, unreached int
	survived := map[survivor]bool{}
	for _, m := range r.mutants {
		switch m.fate {
		case fateKilled:
			killed++
		case fateTimedOut:
			timedOut++
		case fateLived:
			key := survivor{dir + "/" + m.file(), m.line, m.change}
			survived[key] = true
			if why, ok := r.known[key]; ok {
				known++
				fmt.Fprintf(out, "%s cannot be killed: %s: %s\n", m.at, m.change, why)
				continue
			}
			lived++
			fmt.Fprintf(out, "%s lived: %s\n", m.at, m.change)
		case fateUnreached:
			unreached++
			fmt.Fprintf(out, "%s not reached: %s\n", m.at, m.change)
		}
	}
	reached := killed + timedOut + lived + known
	efficacy, coverage := percent(killed+timedOut, reached-known), percent(reached, reached+unreached)
	fmt.Fprintf(out, "%s: %d mutants, %.1f %% killed of those reached (%d of %d, %d timed out, %d cannot be killed: %.1f %% without them), %.1f %% reached\n",
		dir, len(r.mutants), percent(killed+timedOut, reached), killed+timedOut, reached, timedOut, known, efficacy, coverage)
	stale := r.all && r.known.stale(out, dir, survived)
	return efficacy >= least && coverage >= least && !stale
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}
