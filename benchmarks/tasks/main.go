// Command tasks simulates users' tasks that each need several calls of a service that is overloaded, and prints how
// many of the tasks that the service could serve were served whole.
//
//	go run ./benchmarks/tasks                     # the whole table, some minutes
//	go run ./benchmarks/tasks -calls 1,10 -kind cpu -at-once=no
//	go run ./benchmarks/tasks -seconds 120 -seed 2
//
// A client calls a front service, and that calls a back service so many times, in turn or at once. The task has failed
// when one of the calls has. The back service has 4 tasks with 4 processors each (cpu), or with 4 slots each that a
// request waits in (pool). A call takes 10 ms in the mean, and a task must end within a second. All policies are the
// defaults of packages egress and ingress, in virtual time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}

// A plan is the rows and columns of the table.
type plan struct {
	calls  []int
	loads  []float64
	kinds  []string
	atOnce []bool
	trial
}

// run is main with the arguments.
func run(w io.Writer, args []string) error {
	f := flag.NewFlagSet("tasks", flag.ContinueOnError)
	calls := f.String("calls", "1,2,5,10,20", "calls of a task")
	loads := f.String("loads", "1.2,2,4", "offered load, in times of the capacity")
	kind := f.String("kind", "cpu,pool", "what the back service is short of: cpu, pool")
	atOnce := f.String("at-once", "no,yes", "whether a task makes its calls at once")
	seconds := f.Int("seconds", 30, "measured seconds, after 10 s that are not")
	seed := f.Uint64("seed", 1, "seed of all random numbers")
	stay := f.Bool("stay", false, "the servers do not notice when a caller gives up a call")
	if err := f.Parse(args); err != nil {
		return err
	}
	p := plan{kinds: strings.Split(*kind, ","), trial: trial{seconds: *seconds, seed: *seed, stay: *stay}}
	for _, s := range strings.Split(*calls, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("-calls %q: want whole numbers with commas between them", *calls)
		}
		p.calls = append(p.calls, n)
	}
	for _, s := range strings.Split(*loads, ",") {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("-loads %q: want numbers with commas between them", *loads)
		}
		p.loads = append(p.loads, x)
	}
	for _, s := range strings.Split(*atOnce, ",") {
		p.atOnce = append(p.atOnce, s == "yes")
	}
	return p.print(w)
}

// print runs the trials, and prints a table for each way to make calls.
func (p *plan) print(w io.Writer) error {
	trials := p.trials()
	shares, err := simulate(trials)
	if err != nil {
		return err
	}
	for _, atOnce := range p.atOnce {
		_, _ = fmt.Fprintln(w, p.heading(atOnce))
		for _, calls := range p.calls {
			_, _ = fmt.Fprintf(w, "| %5d |", calls)
			for i, t := range trials {
				if t.atOnce == atOnce && t.calls == calls {
					_, _ = fmt.Fprintf(w, " %9.2f |", shares[i])
				}
			}
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintln(w)
	}
	return nil
}

func (p *plan) heading(atOnce bool) string {
	title := "Calls in turn, share of the possible tasks:\n\n"
	if atOnce {
		title = "Calls at once, share of the possible tasks:\n\n"
	}
	head, rule := "| calls |", "|------:|"
	for _, kind := range p.kinds {
		for _, load := range p.loads {
			head += fmt.Sprintf(" %9s |", fmt.Sprintf("%s %gx", kind, load))
			rule += "----------:|"
		}
	}
	return title + head + "\n" + rule
}

// trials returns all cells, row by row.
func (p *plan) trials() (all []trial) {
	for _, atOnce := range p.atOnce {
		for _, calls := range p.calls {
			for _, kind := range p.kinds {
				for _, load := range p.loads {
					t := p.trial
					t.atOnce, t.calls, t.kind, t.load = atOnce, calls, kind, load
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// simulate returns the share of each trial. It runs as many at once as there are processors, and returns the first error.
func simulate(trials []trial) ([]float64, error) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	shares, next := make([]float64, len(trials)), make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				var err error
				if shares[i], err = trials[i].share(ctx); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, i := range slowestFirst(trials) {
		next <- i
	}
	close(next)
	workers.Wait()
	return shares, context.Cause(ctx)
}

// slowestFirst returns the places of the trials, by load, so that no processor is left with a long one.
func slowestFirst(trials []trial) []int {
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(10 * (trials[b].load - trials[a].load)) })
	return order
}

const (
	warmUp   = 10 * time.Second
	deadline = time.Second
)
