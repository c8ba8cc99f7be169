// Command fleet simulates quotas that 10 to 10,000 tasks share, with 100,000 customers.
//
//	go run ./benchmarks/fleet                  # 10 and 100 tasks, up to a minute
//	go run ./benchmarks/fleet -tasks 10000     # all sizes, some minutes
//	go run ./benchmarks/fleet -tasks 10000 -record
//	go run ./benchmarks/fleet -page            # write the page again
//
// All tasks run the code of packages quota and quota/fleet, in virtual time. The network, and the
// processes around that code, are modelled. With -record the results are stored in record.json, and
// the tables of docs/scale.md and its picture are written from them.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run is main with the arguments. It runs in the root of the repository.
func run(w io.Writer, args []string) error {
	f := flag.NewFlagSet("fleet", flag.ContinueOnError)
	tasks := f.Int("tasks", 100, "run all sizes up to this number of tasks")
	name := f.String("scenario", "", "run only scenarios whose name begins with this")
	record := f.Bool("record", false, "store the results, and write the page and its picture")
	page := f.Bool("page", false, "write the page and its picture from the stored results, and run nothing")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *page {
		r, err := readRecord(".")
		if err != nil {
			return err
		}
		return writePage(".", r)
	}
	r := &Record{Time: time.Now().UTC().Truncate(time.Second), Machine: machine.Describe()}
	pressure := machine.Pressure()
	for _, s := range selected(*tasks, *name) {
		began := time.Now()
		result, err := simulate(s)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s, %d tasks: %v\n", s.Name, s.Tasks, time.Since(began).Round(ms))
		r.Results = append(r.Results, result)
	}
	r.CPUPressure = pressure()
	if *record {
		if err := r.write("."); err != nil {
			return err
		}
		return writePage(".", r)
	}
	_, err := fmt.Fprintf(w, "%s\n%s", r.accuracy(), r.costs())
	return err
}

// selected returns the scenarios with at most so many tasks whose name begins with a prefix.
func selected(tasks int, prefix string) (all []*scenario) {
	for _, n := range sizes {
		if n > tasks {
			break
		}
		for _, s := range append(scenarios(n), costly(n)...) {
			if strings.HasPrefix(s.Name, prefix) && (s.Zones < 2 || n < 10_000) { // zones take too long
				all = append(all, s)
			}
		}
	}
	return all
}
