package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/sim"
)

// A processorScenario has requests that need a processor, and is run by package sim: the queue
// of the processors decides on them in package shed, and no limit on what is in flight does.
type processorScenario struct {
	name, about string
	processors  int
	cpu, wait   sim.Dist
	slots       int
	load        float64 // of the capacity
	later       []sim.Rate
	classes     [spillway.Criticalities]float64
	deadline    bool // is known to the server
	bursts      bool // of 200 requests twice a second
	loud        bool // beside one customer that asks for ten times the capacity, which does not count
}

var (
	oneClass = [spillway.Criticalities]float64{0, 0, 1, 0}
	equal    = [spillway.Criticalities]float64{1, 1, 1, 1}
	brisk    = sim.Exponential(1500 * time.Microsecond)
	usual    = processorScenario{processors: 4, cpu: brisk, classes: oneClass}
)

// processorScenarios are the rows for package shed. The score is the good requests in per cent
// of the number that the capacity allows, if the higher classes come first.
func processorScenarios() []processorScenario {
	vary := func(name, about string, load float64, change func(*processorScenario)) processorScenario {
		s := usual
		s.name, s.about, s.load = name, about, load
		change(&s)
		return s
	}
	same := func(*processorScenario) {}
	four := func(s *processorScenario) { s.classes = equal }
	return []processorScenario{
		vary("P1 0.9x", "nothing need be rejected", 0.9, same),
		vary("P2 2x", "one class", 2, same),
		vary("P3 10x", "one class", 10, same),
		vary("P4 2x, four classes", "a quarter of each", 2, four),
		vary("P5 10x, four classes", "a quarter of each", 10, four),
		vary("P6 2x, deadlines", "known to the server", 2, func(s *processorScenario) { s.deadline = true }),
		vary("P7 2x, one processor", "four classes", 2, func(s *processorScenario) { s.processors, s.classes = 1, equal }),
		vary("P8 2x, 32 processors", "four classes", 2, func(s *processorScenario) { s.processors, s.classes = 32, equal }),
		vary("P9 2x, heavy tail", "some take 30 ms", 2, func(s *processorScenario) {
			s.cpu = sim.Bimodal(time.Millisecond, 30*time.Millisecond, 0.02)
		}),
		vary("P10 2x, waits", "each also waits 5 ms", 2, func(s *processorScenario) { s.wait, s.classes = sim.Exponential(5*time.Millisecond), equal }),
		vary("P11 bursts at 0.5x", "nothing need be rejected", 0.5, func(s *processorScenario) { s.bursts = true }),
		vary("P12 pulses", "3x for 1 s of every 4 s", 0.5, func(s *processorScenario) { s.classes, s.later = equal, pulses(4, 1, 3, 0.5) }),
		vary("P13 short pulses", "3x for 100 ms of every 500 ms", 0.3, func(s *processorScenario) { s.later = pulses(0.5, 0.1, 3, 0.3) }),
		vary("P14 pool, 3x", "8 slots of 20 ms, four classes", 3, func(s *processorScenario) {
			s.cpu, s.wait, s.slots, s.classes = sim.Exponential(50*time.Microsecond), sim.Exponential(20*time.Millisecond), 8, equal
		}),
		vary("P15 loud customer", "0.4x beside one at 10x", 0.4, func(s *processorScenario) { s.loud = true }),
	}
}

// prefixedProcessors returns the scenarios whose name begins with prefix.
func prefixedProcessors(prefix string) (some []processorScenario) {
	for _, s := range processorScenarios() {
		if strings.HasPrefix(s.name, prefix) {
			some = append(some, s)
		}
	}
	return some
}

const processorTime = 20 * time.Second

// pulses returns rates, in capacities: high at the begin of each period, and low for the rest.
func pulses(period, length, high, low float64) (rates []sim.Rate) {
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for s := period; s < processorTime.Seconds(); s += period {
		rates = append(rates, sim.Rate{At: at(s), Rate: high}, sim.Rate{At: at(s + length), Rate: low})
	}
	return rates
}

// capacity is in requests per second.
func (s *processorScenario) capacity() float64 {
	c := float64(s.processors) / s.cpu.Mean().Seconds()
	if s.slots > 0 {
		c = min(c, float64(s.slots)/s.wait.Mean().Seconds())
	}
	return c
}

func (s *processorScenario) config(seed uint64) sim.Config {
	const useful = 100 * time.Millisecond
	c := s.capacity()
	call := sim.Edge{
		To: "server", Egress: egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff},
		Retry: sim.Retry{Budgeted: retry.BudgetedConfig{MaxAttempts: 1}},
	}
	group := sim.Clients{Name: "callers", Count: 20, Rate: s.load * c, Useful: useful, Classes: s.classes, Call: call}
	if s.deadline {
		group.Deadline = useful
	}
	for _, r := range s.later {
		group.Rates = append(group.Rates, sim.Rate{At: r.At, Rate: r.Rate * c})
	}
	config := sim.Config{
		Seed: seed, Duration: processorTime, Windows: []sim.Window{{Name: "all", From: 2 * time.Second}},
		Clients: []sim.Clients{group},
		Services: []sim.Service{{
			Name: "server", Processors: s.processors, CPU: s.cpu, Wait: s.wait, Slots: s.slots,
			Rejection: 10 * time.Microsecond, Ingress: new(ingress.Config),
		}},
	}
	if s.loud {
		other := group
		other.Name, other.Count, other.Customer, other.Rate = "loud", 1, "loud", 10*c
		config.Clients[0].Customer = "modest"
		config.Clients = append(config.Clients, other)
	}
	for at := 2 * time.Second; s.bursts && at < processorTime; at += 500 * time.Millisecond {
		config.Faults = append(config.Faults, sim.Fault{Kind: sim.Herd, At: at, Clients: "callers", Calls: 200})
	}
	return config
}

// run returns the score, from 0 to 100.
func (s *processorScenario) run(seed uint64) (float64, error) {
	x, err := sim.New(s.config(seed))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	result, err := x.Run(context.Background())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	callers := &result.Clients[0]
	sum := callers.Windows[0]
	if len(s.later) > 0 { // the capacity is enough for other classes at each time
		possible := 0.0
		for _, offered := range callers.Series.Offered[2:] {
			possible += min(float64(offered), s.capacity())
		}
		return 100 * float64(sum.Good) / possible, nil
	}
	classes := sum.Classes
	if len(classes) == 0 {
		classes = []sim.ClassSummary{{Counts: sum.Counts}}
	}
	capacity := s.capacity() * (processorTime - 2*time.Second).Seconds()
	good, possible := 0.0, 0.0
	for _, class := range classes { // the highest first
		fits := min(float64(class.Offered), capacity-possible)
		good += min(float64(class.Good), fits)
		possible += fits
	}
	return 100 * good / possible, nil
}

// processorRows returns a row for each scenario.
func processorRows(list []processorScenario, s seeds) (rows []jsonRow, err error) {
	for _, sc := range list {
		row := jsonRow{Scenario: sc.name, About: sc.about, Overload: sc.load > 1, Algorithms: []jsonScore{{Name: "ours"}}}
		for i := range s.n {
			score, err := sc.run(s.from + i + 1)
			if err != nil {
				return nil, err
			}
			row.Algorithms[0].Percent += score / float64(s.n)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// printProcessors prints the rows.
func printProcessors(w io.Writer, rows []jsonRow) {
	for _, r := range rows {
		fmt.Fprintf(w, "%-24s %-32s %5.1f\n", r.Scenario, r.About, r.Algorithms[0].Percent)
	}
	fmt.Fprintf(w, "%-57s %5.1f\n", "mean", meanOf(rows))
}
