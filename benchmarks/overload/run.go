package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// runCommand has the flags of a run. The parser calls its Validate.
type runCommand struct {
	Fronts     []string      `default:"none,static,failsafe-go,go-zero,aegis,spillway" placeholder:"NAME" help:"Fronts of the handler, one row each (default ${default}; also spillway-both, spillway-handler, spillway-decrypted, spillway-connections)."`
	Backends   []string      `default:"cpu,mixed,blocking" placeholder:"KIND" help:"What a call does, one table each (default ${default})."`
	Wires      []string      `default:"http1" placeholder:"NAME" help:"How calls reach the server, one table each: http1, http1-body, http2, grpc, tls-http1, tls-http2, http1-new, tls-http1-new (default ${default})."`
	Loads      []float64     `default:"0.9,1.1,2,5,10" placeholder:"X" help:"Loads, in capacities of the server with nothing before it, one column each (default ${default})."`
	Procs      int           `default:"1" placeholder:"N" help:"Processors of the server (default ${default})."`
	Step       time.Duration `default:"3s" placeholder:"DURATION" help:"How long each load is measured (default ${default})."`
	WarmUp     time.Duration `default:"20s" placeholder:"DURATION" help:"How long the highest load lasts before it is measured, for fronts that average their CPU use for many seconds (default ${default})."`
	SlowAccept time.Duration `default:"0s" placeholder:"DURATION" help:"Delay before the server accepts each connection (default ${default})."`
	Seed       uint64        `default:"1" placeholder:"N" help:"Seed of the arrival times (default ${default})."`
	JSON       string        `name:"json" placeholder:"FILE" help:"Write all measurements to FILE."`
}

// Help is what the parser adds to the help of the command.
func (runCommand) Help() string {
	return "The default takes about nine minutes for each wire. --fronts, --backends and --wires make pieces of it, which " +
		"write --json files for \"overload table\". Close other programs that need the CPU."
}

// Validate returns an error that names the first flag that is wrong.
func (c *runCommand) Validate() error {
	for _, list := range []struct {
		flag       string
		have, must []string
	}{{"--fronts", c.Fronts, frontNames()}, {"--backends", c.Backends, kinds}, {"--wires", c.Wires, wireNames()}} {
		for _, name := range list.have {
			if !slices.Contains(list.must, name) {
				return fmt.Errorf("%s has %q, must be of %s", list.flag, name, strings.Join(list.must, ", "))
			}
		}
	}
	for _, l := range c.Loads {
		if !(l > 0 && l <= 100) { // also finds NaN
			return fmt.Errorf("--loads has %v, must be above 0 and at most 100", l)
		}
	}
	switch {
	case len(c.Loads) == 0:
		return errors.New("--loads is empty, must have one at least")
	case c.Procs < 1 || c.Procs > 64:
		return fmt.Errorf("--procs is %d, must be from 1 to 64", c.Procs)
	case c.Step < time.Second || c.Step > time.Minute:
		return fmt.Errorf("--step is %v, must be from 1s to 1m", c.Step)
	case c.WarmUp < 0 || c.WarmUp > time.Minute:
		return fmt.Errorf("--warm-up is %v, must be from 0s to 1m", c.WarmUp)
	case c.SlowAccept < 0 || c.SlowAccept > time.Second:
		return fmt.Errorf("--slow-accept is %v, must be from 0s to 1s", c.SlowAccept)
	}
	return nil
}

func frontNames() []string { return names(fronts, func(f front) string { return f.name }) }

// run prints and writes what was measured even if ctx ended before it was all.
func (c *runCommand) run(ctx context.Context, stdout, progress io.Writer) error {
	if c.JSON != "" { // before the run, so that a name that cannot be written costs no minutes
		if err := new(Result).write(c.JSON); err != nil {
			return usage{fmt.Errorf("--json: %w", err)}
		}
	}
	result, err := c.measure(ctx, progress)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if c.JSON != "" {
		err = errors.Join(err, result.write(c.JSON))
	}
	return errors.Join(err, result.writeTables(stdout))
}

// measure may return both a result and an error: ctx ended.
func (c *runCommand) measure(ctx context.Context, progress io.Writer) (*Result, error) {
	result := &Result{Started: time.Now(), Seed: c.Seed, Machine: machine.Describe()}
	cpus, restore := apart(c.Procs)
	defer restore()
	for _, w := range c.Wires {
		for _, kind := range c.Backends {
			b := backendCommand{Kind: kind, Wire: w, Procs: c.Procs, SlowAccept: c.SlowAccept}
			if err := c.table(ctx, cpus, b, result, progress); err != nil {
				return result, err
			}
		}
	}
	return result, nil
}

// apart prepares this process for servers with procs processors, and returns what undoes that.
// With more than one the kernel decides where they run.
func apart(procs int) (cpus *machine.Affinity, restore func()) {
	gc := debug.SetGCPercent(gcPercent)
	clients := runtime.GOMAXPROCS(max(1, runtime.NumCPU()-1))
	cpus = new(machine.Affinity)
	if procs == 1 {
		if separated, err := machine.Separate(); err == nil {
			cpus = separated
		}
	}
	return cpus, func() {
		cpus.End()
		runtime.GOMAXPROCS(clients)
		debug.SetGCPercent(gc)
	}
}

// table measures all fronts for one kind of server on one wire.
func (c *runCommand) table(ctx context.Context, cpus *machine.Affinity, b backendCommand, result *Result, progress io.Writer) error {
	w, _ := wireNamed(b.Wire)
	before, err := b.capacity(ctx, cpus)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s, %s: capacity %.0f/s\n", b.Wire, b.Kind, before.perSecond)
	for _, name := range c.Fronts {
		f, _ := frontNamed(name)
		if !f.suits(w) {
			continue
		}
		row, err := c.row(ctx, cpus, b, before, f)
		if err != nil {
			return err
		}
		after, err := b.capacity(ctx, cpus)
		if err != nil {
			return err
		}
		row.counted(before.perSecond, after.perSecond)
		before = after
		result.Rows = append(result.Rows, *row)
		fmt.Fprintf(progress, "%s, %s: %s\n", b.Wire, b.Kind, row.progress())
	}
	return nil
}

// row measures one front.
func (c *runCommand) row(ctx context.Context, cpus *machine.Affinity, b backendCommand, have pace, f front) (_ *Row, err error) {
	b.Front = f.name
	row := &Row{
		Backend: b.Kind, Wire: b.Wire, Procs: b.Procs, SlowAcceptMS: milliseconds(b.SlowAccept), Front: f.name,
		CapacityRPS: have.perSecond, CallUS: microseconds(have.cpu), DeadlineMS: milliseconds(deadlineOf(b.Kind)),
	}
	t := trial{backend: b, capacity: have.perSecond, seed: c.Seed}
	if f.averages {
		inside, missing := newContainer(b.Procs)
		if missing != nil {
			row.WholeMachine = missing.Error()
		} else {
			t.launch = inside.launch
			defer func() { err = errors.Join(err, inside.close()) }()
		}
	}
	plan := newPlan(c.Loads, c.Step, c.surge(f), rest(f))
	t.load = plan.load
	measured, err := t.run(ctx, cpus)
	if err != nil {
		return nil, err
	}
	row.add(plan, measured)
	if b.Kind == kindCPU && f.rejects() {
		cost, err := b.rejection(ctx, cpus, &f)
		if err != nil {
			return nil, err
		}
		row.RejectionUS = new(microseconds(cost))
	}
	return row, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// surge is how long the highest load lasts.
func (c *runCommand) surge(f front) time.Duration {
	if f.averages {
		return max(shortSurge, c.Step+settle, c.Step+c.WarmUp)
	}
	return max(shortSurge, c.Step+settle)
}

// rest is how long it is calm before each load after the highest. Some limits recover from
// that one only when it is calm; a front that averages its CPU use would need
// another warm-up.
func rest(f front) time.Duration {
	if f.averages {
		return 0
	}
	return pause
}
