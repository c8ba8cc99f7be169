package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/prediction"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/simreport"
)

// simCommand has the commands of "spillway sim".
type simCommand struct {
	Run    simRun   `cmd:"" default:"withargs" help:"Run scenarios (the default)."`
	List   simList  `cmd:"" help:"List the built-in scenarios."`
	Show   simShow  `cmd:"" help:"Print a built-in scenario, as a start for your own."`
	Schema printed  `cmd:"" help:"Print the JSON schema of scenario files."`
	Drill  simDrill `cmd:"" help:"Predict what a drill has measured, and compare."`
}

func (simCommand) Help() string {
	return "A scenario is a system and what happens to it, in a YAML or JSON file or built in. It runs in virtual time on the " +
		"policies that run in production: minutes pass in a second, and the same seed gives the same bytes on every machine.\n\n" +
		"Exit status: 0 if all expectations of the scenarios hold, 1 if not, 2 for a wrong file or wrong usage, 130 if interrupted."
}

type simList struct{ output }

func (c *simList) Run(w streams) error {
	scenarios, err := scenario.Builtin()
	if err != nil {
		return err
	}
	type entry struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	var all []entry
	for _, s := range scenarios {
		all = append(all, entry{s.Name, s.About})
	}
	return c.tell(w, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, e := range all {
			fmt.Fprintf(t, "%s\t%s\n", e.Name, e.About)
		}
		return t.Flush()
	}, all, nil)
}

type simShow struct {
	Name string `arg:"" help:"Name of a built-in scenario."`
}

func (s *simShow) Run(w streams) error {
	text, err := scenario.Text(s.Name)
	if err != nil {
		return usage{err}
	}
	_, err = w.stdout.Write(text)
	return err
}

// simDrill predicts the results of a drill from its settings and the capacity of its backend
// alone, and compares them with the measured results.
type simDrill struct {
	output
	File string `arg:"" help:"Result that spillway drill --json-file has written."`
	Seed uint64 `default:"1" placeholder:"N" help:"Seed of the simulation; its arrivals differ from those of the drill (default ${default})."`
}

func (c *simDrill) Run(ctx context.Context, w streams) error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return usage{err}
	}
	if err := c.try(); err != nil {
		return err
	}
	all, err := prediction.Of(ctx, text, c.Seed)
	if ctx.Err() != nil {
		return status(exitInterrupted)
	}
	if err != nil {
		return usage{fmt.Errorf("%s: %w", c.File, err)}
	}
	return c.tell(w, all.WriteTable, all, outcome(false, all.Within()))
}

// simRun has the flags of "spillway sim run".
type simRun struct {
	output
	Scenarios []string `arg:"" optional:"" help:"Files, or names of built-in scenarios."`
	All       bool     `help:"Run all built-in scenarios."`
	Sweep     []string `sep:"none" placeholder:"FIELD=A,B,..." help:"Run with each of these values, such as throttle.K=1.1,1.5,2; repeat it for each combination."`
	Seeds     int      `default:"1" placeholder:"N" help:"Repeat with N seeds, and print the mean with its confidence interval (default ${default})."`
	Seed      uint64   `placeholder:"N" help:"First seed (default that of the scenario)."`
	Quick     bool     `help:"Run the short versions, as tests do."`
	Report    string   `placeholder:"FILE.html" help:"Write a page with charts to FILE, which works without a network."`
}

// Run runs the scenarios, and writes the results to each requested output.
func (c *simRun) Run(ctx context.Context, w streams) error {
	scenarios, options, err := c.open()
	if err != nil {
		return usage{err}
	}
	var all []*scenario.Outcome
	page := file{"report", c.Report, func(w io.Writer) error { return simreport.Write(w, all) }}
	if err := c.try(page); err != nil {
		return err
	}
	passed := true
	for _, s := range scenarios {
		o, err := c.outcome(ctx, s, options, w)
		if err != nil {
			return err
		}
		all = append(all, o)
		passed = passed && o.Passed()
	}
	none := func(io.Writer) error { return nil } // the tables are printed as they come
	return c.tell(w, none, all, outcome(false, passed), page)
}

// outcome runs one scenario and prints its table, if tables are wanted.
func (c *simRun) outcome(ctx context.Context, s *scenario.Scenario, options scenario.Options, w streams) (*scenario.Outcome, error) {
	runs, err := s.Runs(options)
	if err != nil {
		return nil, usage{s.Locate(err)}
	}
	results, err := scenario.Execute(ctx, runs, newProgress(w.stderr, s.Name, runs).tell)
	if ctx.Err() != nil {
		return nil, status(exitInterrupted) // no message: the user interrupted it
	}
	if err != nil {
		return nil, usage{s.Locate(err)}
	}
	o := s.Conclude(runs, results)
	if c.Output != "text" {
		return o, nil
	}
	return o, o.WriteTable(w.stdout)
}

func (c *simRun) open() (all []*scenario.Scenario, o scenario.Options, err error) {
	o = scenario.Options{Quick: c.Quick, Seeds: c.Seeds, Seed: c.Seed}
	for _, text := range c.Sweep {
		sweep, err := scenario.ParseSweep(text)
		if err != nil {
			return nil, o, fmt.Errorf("--sweep %w", err)
		}
		o.Sweep = append(o.Sweep, sweep)
	}
	if c.Seeds < 1 {
		return nil, o, fmt.Errorf("--seeds is %d, must be 1 or more", c.Seeds)
	}
	if c.All {
		if all, err = scenario.Builtin(); err != nil {
			return nil, o, err
		}
	}
	for _, name := range c.Scenarios {
		s, err := scenario.Open(name)
		if err != nil {
			return nil, o, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, o, errors.New("sim: name a file or a built-in scenario (spillway sim list), or use --all")
	}
	return all, o, nil
}

// progress prints a line every tellSimEvery.
type progress struct {
	w    io.Writer
	name string
	runs []scenario.Run

	mu   sync.Mutex
	at   []time.Duration
	told time.Time
}

// tellSimEvery is the interval of progress lines.
const tellSimEvery = 2 * time.Second

func newProgress(w io.Writer, name string, runs []scenario.Run) *progress {
	return &progress{w: w, name: name, runs: runs, at: make([]time.Duration, len(runs)), told: time.Now()}
}

func (p *progress) tell(i int, at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[i] = at
	if time.Since(p.told) < tellSimEvery {
		return
	}
	p.told = time.Now()
	passed, length, done := 0.0, 0.0, 0
	for i, at := range p.at {
		passed += at.Seconds()
		length += p.runs[i].Config.Duration.Seconds()
		if at >= p.runs[i].Config.Duration {
			done++
		}
	}
	fmt.Fprintf(p.w, "%s: %3.0f %%, %d of %d runs\n", p.name, 100*passed/length, done, len(p.at))
}
