// Command concurrency compares limits on requests in flight in virtual time.
//
//	go run ./benchmarks/concurrency [flags]
//
// README.md explains the table.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// algorithms are the columns of the table.
func algorithms() []variant {
	return []variant{
		{"none", newNone},
		{"gradient2", newPeer(newGradient2)},
		{"vegas", newPeer(newVegas)},
		{"bbr", newPeer(newBBR)},
		{"failsafe", newPeer(newFailsafe)},
		{"alone", newAlone},
		{"ours", newOurs},
	}
}

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "concurrency:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	scenario, algorithm, trace  string
	constant                    string
	seeds                       seeds
	random, holes               uint64
	json, picture               string
	ablate, cache, keys, silent bool
	about                       bool
	commit                      bool
	strict                      bool
	processors, scale           bool
	every                       Time
}

func run(w io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if done, err := o.other(w); done {
		return err
	}
	list, err := o.list()
	if err != nil {
		return err
	}
	var known *cache
	if o.cache {
		known = openCache(cacheFile())
	}
	vs, err := named(algorithms(), o.algorithm)
	switch {
	case err != nil:
		return err
	case o.picture != "":
		return draw(o.picture, vs[len(vs)-1].maker)
	case o.trace != "":
		return trace(w, o, list, vs)
	case o.ablate:
		return ablate(w, o)
	}
	arrivals := o.seeds
	if o.random+o.holes > 0 {
		arrivals.from = 0
	}
	rows := evaluate(list, vs, arrivals, known)
	printTable(w, rows, vs, o.seeds)
	if o.random+o.holes > 0 {
		printAbout(w, rows)
		n, err := linesOfCode("concurrency")
		if err != nil {
			return fmt.Errorf("lines of code: %w", err)
		}
		fmt.Fprintf(w, "\n%d lines of code in package concurrency, seeds after %d\n", n, o.seeds.from)
	}
	if o.keys {
		printKeys(w, rows, vs)
	}
	if o.json != "" {
		return writeJSON(o.json, rows, vs)
	}
	return nil
}

// other does what is no comparison, if that is wanted.
func (o *options) other(w io.Writer) (done bool, err error) {
	switch {
	case o.scale:
		return true, printScale(w, o.seeds)
	case o.processors:
		return true, o.runProcessors(w)
	case o.about:
		list, err := o.list()
		if err != nil {
			return true, err
		}
		return true, printScenarios(w, list)
	}
	return false, nil
}

// runProcessors is run for the scenarios in which processors are short.
func (o *options) runProcessors(w io.Writer) error {
	if o.ablate {
		return ablate(w, *o)
	}
	rows, err := processorRows(prefixedProcessors(o.scenario), o.seeds)
	if err != nil {
		return err
	}
	printProcessors(w, rows)
	if o.json != "" {
		return writeRows(o.json, rows)
	}
	return nil
}

// list returns the scenarios to run. With -random, -from selects the scenarios, and
// their arrivals use the seeds from 1 on.
func (o *options) list() (list []*Scenario, err error) {
	all := suite()
	switch {
	case o.random > 0:
		all = randoms(o.random, o.seeds.from)
	case o.holes > 0:
		all = holesOf(o.holes, o.seeds.from)
	}
	if list = prefixed(all, o.scenario); len(list) == 0 {
		err = fmt.Errorf("no scenario starts with %q", o.scenario)
	}
	return changed(list, func(sc *Scenario) {
		sc.Silent = sc.Silent || o.silent
		sc.Strict = sc.Strict || o.strict
	}), err
}

// changed returns copies of the scenarios with a change.
func changed(list []*Scenario, change func(*Scenario)) []*Scenario {
	copies := make([]*Scenario, len(list))
	for i, sc := range list {
		c := *sc
		change(&c)
		copies[i] = &c
	}
	return copies
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("concurrency", flag.ContinueOnError)
	f.StringVar(&o.scenario, "scenario", "", "run only scenarios whose name starts with this")
	f.StringVar(&o.algorithm, "algorithm", "", "run only these algorithms, separated by commas")
	f.Uint64Var(&o.seeds.n, "seeds", 3, "number of seeds")
	f.Uint64Var(&o.seeds.from, "from", 0, "use the seeds after this one")
	f.BoolVar(&o.cache, "cache", false, "keep oracles in a file in the directory for temporary files")
	f.Uint64Var(&o.random, "random", 0, "run this many random scenarios instead, drawn from the seeds after -from")
	f.BoolVar(&o.about, "list", false, "print the scenarios and what they are about, and run none")
	f.BoolVar(&o.keys, "keys", false, "also print requests by key and by criticality")
	f.Uint64Var(&o.holes, "holes", 0, "run so many variations of each scenario that begins with nothing known, or something wrong; -from as with -random")
	f.StringVar(&o.json, "json", "", "also write everything to this file")
	f.StringVar(&o.picture, "picture", "", "draw the last of the algorithms to this SVG file instead")
	f.BoolVar(&o.silent, "silent", false, "clients send no deadlines")
	f.BoolVar(&o.strict, "strict", false, "requests that run end at their deadlines")
	f.BoolVar(&o.processors, "processors", false, "run the scenarios in which processors are short, of ours only")
	f.BoolVar(&o.scale, "scale", false, "run servers of 1 to 256 processors, of ours only, with the first of the seeds")
	f.BoolVar(&o.commit, "commit", false, "draw the seeds of -random and -holes from the commit of the working directory, in place of -from")
	f.BoolVar(&o.ablate, "ablate", false, "change each constant of ours to half and to double")
	f.StringVar(&o.constant, "constant", "", "with -ablate, only this one, like concurrency.gain")
	f.StringVar(&o.trace, "trace", "", "print what the algorithms know during the scenario whose name starts with this")
	f.DurationVar(&o.every, "every", 100*ms, "interval of -trace")
	if err = f.Parse(args); err == nil && o.seeds.n == 0 {
		err = fmt.Errorf("seeds is 0, must be 1 or more")
	}
	if err == nil && o.commit {
		o.seeds.from, err = commitSeed()
	}
	return o, err
}

func prefixed(list []*Scenario, prefix string) (some []*Scenario) {
	for _, sc := range list {
		if strings.HasPrefix(sc.Name, prefix) {
			some = append(some, sc)
		}
	}
	return some
}

// named returns the variants with the given names, separated by commas. No names
// means all.
func named(vs []variant, names string) (some []variant, err error) {
	if names == "" {
		return vs, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		n := len(some)
		for _, v := range vs {
			if v.name == name {
				some = append(some, v)
			}
		}
		if len(some) == n {
			return nil, fmt.Errorf("no algorithm is called %q", name)
		}
	}
	return some, nil
}
