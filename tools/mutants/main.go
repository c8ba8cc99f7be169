// Command mutants tests the tests of packages: it changes one operator at a time, and reports
// the changes that no test of the package notices.
//
// All mutants of a package are compiled into one test binary, where an environment variable
// selects one of them, and each is run by the tests that reach it only. That takes seconds for
// a package, where a build for each mutant takes hours.
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
	"runtime"
	"slices"
)

func main() {
	least := flag.Float64("least", 95, "percentage that must be killed of the mutants that tests reach, and reached of all")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "number of test processes at a time")
	only := flag.String("run", "", "regular expression of the tests to use")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [flags] directory ...")
		os.Exit(2)
	}
	good := true
	for _, dir := range flag.Args() {
		result, err := examine(dir, *only, *workers)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", dir, err)
			os.Exit(1)
		}
		good = result.report(os.Stdout, dir, *least) && good
	}
	if !good {
		os.Exit(1)
	}
}

// report prints what tests did not notice, then one line of figures.
func (r *result) report(out io.Writer, dir string, least float64) bool {
	slices.SortFunc(r.mutants, func(a, b *mutant) int { return cmp.Compare(a.id, b.id) })
	var killed, timedOut, lived, unreached int
	for _, m := range r.mutants {
		switch m.fate {
		case fateKilled:
			killed++
		case fateTimedOut:
			timedOut++
		case fateLived:
			lived++
			fmt.Fprintf(out, "%s lived: %s\n", m.at, m.change)
		case fateUnreached:
			unreached++
			fmt.Fprintf(out, "%s not reached: %s\n", m.at, m.change)
		}
	}
	reached := killed + timedOut + lived
	efficacy, coverage := percent(killed+timedOut, reached), percent(reached, reached+unreached)
	fmt.Fprintf(out, "%s: %d mutants, %.1f %% killed of those reached (%d of %d, %d timed out), %.1f %% reached\n",
		dir, len(r.mutants), efficacy, killed+timedOut, reached, timedOut, coverage)
	return efficacy >= least && coverage >= least
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}
