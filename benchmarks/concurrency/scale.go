package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed90641741/spillway/sim"
)

// Servers of so many processors are compared. Calls take longer than in the scenarios, so
// that 256 processors have no more of them than can be simulated; a rejection takes the same
// part of a call as 10 µs of 1.5 ms.
var scales = []int{1, 4, 16, 64, 256}

const (
	scaleCPU       = 5 * time.Millisecond
	scaleRejection = 33 * time.Microsecond
	scaleWarmUp    = time.Second
	scaleCalls     = 40_000 // are offered, or more in a second
)

// A scaleRow is what one server does.
type scaleRow struct {
	processors int
	load       float64
	goodput    float64 // of the capacity
	line       float64 // the goodput if nothing but rejections takes processor time: 1 - (load-1)·r/s
	misplaced  float64 // goodput of lower classes in place of higher ones, of all
	p99        time.Duration
	quiet      float64 // good calls of nine customers within their fair share, beside a loud one; of all they make
}

// scaled returns the scenario of a server with so many processors.
func scaled(processors int, load float64) (s processorScenario, end time.Duration) {
	s = usual
	s.processors, s.load, s.cpu, s.classes = processors, load, sim.Exponential(scaleCPU), equal
	length := time.Duration(scaleCalls / (load * s.capacity()) * float64(time.Second))
	return s, scaleWarmUp + max(length, time.Second)
}

// scaledConfig returns what to simulate. If loud is set, one customer sends all of the load, and nine
// quiet customers each send a twentieth of the capacity.
func scaledConfig(processors int, load float64, loud bool, seed uint64) sim.Config {
	s, end := scaled(processors, load)
	c := s.config(seed)
	c.Duration, c.Windows[0].From, c.Services[0].Rejection = end, scaleWarmUp, scaleRejection
	if !loud {
		return c
	}
	group := c.Clients[0]
	group.Classes, group.Name, group.Customer = oneClass, "loud", "loud"
	c.Clients = []sim.Clients{group}
	for i := range 9 {
		group.Name = fmt.Sprint("quiet-", i)
		group.Customer, group.Rate = group.Name, s.capacity()/20
		c.Clients = append(c.Clients, group)
	}
	return c
}

// runScale measures one server at a load, but for its quiet customers.
func runScale(processors int, load float64, seed uint64) (scaleRow, error) {
	row := scaleRow{processors: processors, load: load, line: 1 - (load-1)*scaleRejection.Seconds()/scaleCPU.Seconds()}
	result, err := simulateServer(scaledConfig(processors, load, false, seed))
	if err != nil {
		return row, err
	}
	s, end := scaled(processors, load)
	all := &result.Clients[0].Windows[0]
	row.goodput = float64(all.Good) / (end - scaleWarmUp).Seconds() / s.capacity()
	row.misplaced = misplaced(all.Classes)
	if all.P99MS != nil {
		row.p99 = time.Duration(*all.P99MS * float64(time.Millisecond))
	}
	return row, nil
}

// runQuiet measures the quiet customers of the same server.
func runQuiet(processors int, load float64, seed uint64) (float64, error) {
	result, err := simulateServer(scaledConfig(processors, load, true, seed))
	if err != nil {
		return 0, err
	}
	good, offered := 0, 0
	for i := range result.Clients[1:] {
		w := &result.Clients[1+i].Windows[0]
		good, offered = good+w.Good, offered+w.Offered
	}
	return float64(good) / float64(offered), nil
}

func simulateServer(c sim.Config) (*sim.Result, error) {
	x, err := sim.New(c)
	if err != nil {
		return nil, err
	}
	return x.Run(context.Background())
}

// misplaced returns the share of the goodput that went to lower classes in place of higher ones:
// at the worst line between two classes, the lesser of what was lost above and what was good
// below it. The highest class comes first.
func misplaced(classes []sim.ClassSummary) float64 {
	below, above, worst := 0, 0, 0
	for i := range classes {
		below += classes[i].Good
	}
	all := max(1, below)
	for i := range classes {
		above += classes[i].Offered - classes[i].Good
		below -= classes[i].Good
		worst = max(worst, min(above, below))
	}
	return float64(worst) / float64(all)
}

var scaleLoads = []float64{2, 10}

// printScale runs and prints a table in Markdown.
func printScale(w io.Writer, s seeds) error {
	fmt.Fprintln(w, "| processors | load | goodput % | line % | wrong class % | p99 ms | quiet customers % |")
	fmt.Fprintln(w, "|--:|--:|--:|--:|--:|--:|--:|")
	for _, load := range scaleLoads {
		for _, p := range scales {
			row, err := runScale(p, load, s.from+1)
			if err != nil {
				return err
			}
			if row.quiet, err = runQuiet(p, load, s.from+1); err != nil {
				return err
			}
			fmt.Fprintf(w, "| %d | %g C | %.1f | %.1f | %.1f | %.0f | %.1f |\n", p, load, 100*row.goodput, 100*row.line, 100*row.misplaced,
				float64(row.p99)/float64(time.Millisecond), 100*row.quiet)
		}
	}
	return nil
}
