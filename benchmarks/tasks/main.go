// Command tasks simulates users' tasks that each need several calls of a service that is overloaded, and prints how
// many of the tasks that the service could serve were served whole.
//
//	go run ./benchmarks/tasks                     # the whole table, a minute or two
//	go run ./benchmarks/tasks -calls 1,10 -kinds cpu -ways turn
//	go run ./benchmarks/tasks -seconds 120 -seed 2
//	go run ./benchmarks/tasks -clients 1000       # clients too small to learn anything
//	go run ./benchmarks/tasks -tiers 3 -mixed     # one more service between, four classes
//	go run ./benchmarks/tasks -beside             # half of the calls are tasks of one call
//	go run ./benchmarks/tasks -sockets http       # over real sockets, with what the simulator says beside it: half an hour
//	go run ./benchmarks/tasks -sockets grpc -calls 10 -work 40ms
//
// A client calls a front service, and that calls a back service so many times, in turn or at once. The task has failed
// when one of the calls has. The back service has 4 tasks with 4 processors each (cpu), or with 4 slots each that a
// request waits in (pool). A call takes 10 ms in the mean, and a task must end within a second. All policies are the
// defaults of packages egress and ingress, in virtual time.
//
// Over sockets, the tasks of the back service are processes of their own, and front service and clients are in this one. All of them need
// processors, so that a longer -work, with fewer calls per second, says more on a small machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := begin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}

func begin(args []string) error {
	if len(args) > 0 && args[0] == backCommand {
		return serveBack(os.Stdin, os.Stdout, args[1:])
	}
	return run(os.Stdout, args)
}

// A plan is the tables, rows and columns, and what is the same in all trials.
type plan struct {
	ways    []string
	calls   []int
	kinds   []string
	loads   []float64
	sockets string // the protocol; empty: none
	trial
}

// run is begin in the process that prints.
func run(w io.Writer, args []string) error {
	p := plan{ways: []string{inTurn, atOnce}, calls: []int{1, 2, 5, 10, 20}, kinds: []string{cpu, pool}, loads: []float64{1.2, 2, 4}}
	f := flag.NewFlagSet("tasks", flag.ContinueOnError)
	f.Func("ways", "how a task makes its calls: turn, once (default both)", list(&p.ways, oneOf(inTurn, atOnce)))
	f.Func("calls", "calls of a task (default 1,2,5,10,20)", list(&p.calls, strconv.Atoi))
	f.Func("kinds", "what the back service is short of: cpu, pool (default both)", list(&p.kinds, oneOf(cpu, pool)))
	f.Func("loads", "offered load, in times of the capacity (default 1.2,2,4)", list(&p.loads, number))
	f.StringVar(&p.sockets, "sockets", "", "run over sockets, too, with this protocol before the back service: http, grpc; only pool")
	f.DurationVar(&p.work, "work", 10*time.Millisecond, "mean time of a call; a task has a hundred times as long")
	f.DurationVar(&p.warmUp, "warmup", 10*time.Second, "time that is not measured, before that")
	f.IntVar(&p.seconds, "seconds", 30, "measured seconds")
	f.IntVar(&p.clients, "clients", 10, "clients that send the tasks; each has a throttle and a retry budget")
	f.IntVar(&p.tiers, "tiers", 2, "services in a row: 2, or 3 with one that passes each call on")
	f.BoolVar(&p.mixed, "mixed", false, "10, 50, 20 and 20 % of the tasks are of each class, the highest first; default all CRITICAL")
	f.BoolVar(&p.beside, "beside", false, "half of the offered calls are tasks of one call; their share is the second number")
	f.BoolVar(&p.stay, "stay", false, "servers do not notice that a caller has given up")
	f.Uint64Var(&p.seed, "seed", 1, "seed of all random numbers")
	if err := f.Parse(args); err != nil {
		return err
	}
	if p.sockets != "" {
		if err := p.overSockets(); err != nil {
			return err
		}
	}
	return p.print(w)
}

// overSockets has the plan hold only what runs over sockets.
func (p *plan) overSockets() error {
	if _, err := oneOf(overHTTP, overGRPC)(p.sockets); err != nil {
		return fmt.Errorf("-sockets: %w", err)
	}
	if p.tiers != 2 || p.mixed || p.beside || p.stay {
		return errors.New("over sockets there are two services and one class: leave out -tiers, -mixed, -beside and -stay")
	}
	p.kinds, p.inTurns = []string{pool}, true
	return nil
}

// list returns a flag function that sets a list from a text with commas.
func list[T any](to *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		*to = nil
		for part := range strings.SplitSeq(text, ",") {
			v, err := parse(part)
			if err != nil {
				return err
			}
			*to = append(*to, v)
		}
		return nil
	}
}

func number(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func oneOf(a, b string) func(string) (string, error) {
	return func(text string) (string, error) {
		if text != a && text != b {
			return "", fmt.Errorf("%q is not %s or %s", text, a, b)
		}
		return text, nil
	}
}

// print runs the trials, and prints a table for each way to make calls.
func (p *plan) print(w io.Writer) error {
	trials := p.trials()
	if err := simulate(trials); err != nil {
		return err
	}
	if p.sockets != "" {
		_, _ = fmt.Fprintf(w, "Over sockets (%s), and in brackets as simulated.\n\n", p.sockets)
		if err := runAll(trials, p.sockets); err != nil {
			return err
		}
	}
	row := len(p.kinds) * len(p.loads)
	for _, way := range p.ways {
		_, _ = fmt.Fprintf(w, "Calls %s, share of the possible tasks:\n\n%s\n", names[way], p.heading())
		for _, calls := range p.calls {
			_, _ = fmt.Fprintf(w, "| %5d |", calls)
			for _, t := range trials[:row] {
				_, _ = fmt.Fprintf(w, " %11s |", t.result)
			}
			_, _ = fmt.Fprintln(w)
			trials = trials[row:]
		}
		_, _ = fmt.Fprintln(w)
	}
	return nil
}

var names = map[string]string{inTurn: "in turn", atOnce: "at once"}

func (p *plan) heading() string {
	head, rule := "| calls |", "|------:|"
	for _, kind := range p.kinds {
		for _, load := range p.loads {
			head += fmt.Sprintf(" %11s |", fmt.Sprintf("%s %gx", kind, load))
			rule += "------------:|"
		}
	}
	return head + "\n" + rule
}

// trials returns all cells, table by table and row by row.
func (p *plan) trials() (all []trial) {
	for _, way := range p.ways {
		for _, calls := range p.calls {
			for _, kind := range p.kinds {
				for _, load := range p.loads {
					t := p.trial
					t.way, t.calls, t.kind, t.load = way, calls, kind, load
					all = append(all, t)
				}
			}
		}
	}
	return all
}
