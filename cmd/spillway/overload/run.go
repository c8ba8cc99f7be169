package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
)

// service is how much CPU time a call burns, where it burns any.
const service = 1500 * time.Microsecond

// runCommand has the flags of a run. The parser calls its Validate.
type runCommand struct {
	Fronts   []string      `default:"none,static,failsafe-go,go-zero,aegis,spillway" placeholder:"NAME" help:"What stands before the handler, one row each (default ${default})."`
	Backends []string      `default:"cpu,mixed,blocking" placeholder:"KIND" help:"What a call does, one table each (default ${default})."`
	Loads    []float64     `default:"0.9,1.1,2,5,10" placeholder:"X" help:"Loads, in capacities of the server with nothing before it, one column each (default ${default})."`
	Procs    int           `default:"1" placeholder:"N" help:"Processors of the server (default ${default})."`
	Step     time.Duration `default:"3s" placeholder:"DURATION" help:"How long each load is measured (default ${default})."`
	WarmUp   time.Duration `default:"20s" placeholder:"DURATION" help:"How long the highest load lasts before it is measured, for fronts that average their CPU use for many seconds (default ${default})."`
	Seed     uint64        `default:"1" placeholder:"N" help:"Seed of the arrival times (default ${default})."`
	JSON     string        `name:"json" placeholder:"FILE" help:"Write all that was measured to FILE."`
}

// Help is what the parser adds to the help of the command.
func (runCommand) Help() string {
	return "All of it takes about nine minutes. --fronts and --backends make pieces of it, which write --json files for " +
		"\"overload table\". Close other programs that need the CPU."
}

// Validate returns an error that names the first flag that is wrong.
func (c *runCommand) Validate() error {
	for _, f := range c.Fronts {
		if _, ok := frontNamed(f); !ok {
			return fmt.Errorf("--fronts has %q, must be of %s", f, strings.Join(frontNames(), ", "))
		}
	}
	kinds := []string{drill.BackendCPU, drill.BackendMixed, drill.BackendBlocking}
	for _, k := range c.Backends {
		if !slices.Contains(kinds, k) {
			return fmt.Errorf("--backends has %q, must be of %s", k, strings.Join(kinds, ", "))
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
	}
	return nil
}

func frontNames() []string {
	names := make([]string, len(fronts))
	for i := range fronts {
		names[i] = fronts[i].name
	}
	return names
}

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
	result := &Result{Started: time.Now(), Seed: c.Seed}
	for _, kind := range c.Backends {
		b := drill.Backend{Kind: kind, Service: service, Procs: c.Procs}
		capacity, b, err := b.Measure(ctx)
		if err != nil {
			return result, err
		}
		fmt.Fprintf(progress, "%s: capacity %.0f/s\n", kind, capacity)
		for _, name := range c.Fronts {
			f, _ := frontNamed(name)
			row, err := c.row(ctx, b, capacity, f)
			if err != nil {
				return result, err
			}
			before := capacity
			if capacity, b, err = b.Measure(ctx); err != nil {
				return result, err
			}
			row.counted(before, capacity)
			result.Rows = append(result.Rows, *row)
			fmt.Fprintf(progress, "%s: %s\n", kind, row.told())
		}
	}
	return result, nil
}

// row measures one front.
func (c *runCommand) row(ctx context.Context, b drill.Backend, capacity float64, f front) (_ *Row, err error) {
	trial, row, leave := c.trial(b, capacity, f)
	defer func() { err = errors.Join(err, leave()) }()
	plan := newPlan(c.Loads, c.Step, c.surge(f), rest(f))
	trial.Load = plan.load
	result, err := trial.Run(ctx)
	if err != nil {
		return nil, err
	}
	row.add(plan, result)
	return row, nil
}

// trial returns a trial of f that is still without load, the row that it will fill,
// and a func to call when it is over.
func (c *runCommand) trial(b drill.Backend, capacity float64, f front) (trial drill.Trial, row *Row, leave func() error) {
	b.Protect = f.name == frontSpillway
	trial = drill.Trial{
		Backend: b, Args: []string{"--front=" + f.name},
		Deadline: drill.Deadline(b.Kind), Capacity: capacity, Seed: c.Seed,
	}
	row = &Row{Backend: b.Kind, Procs: b.Procs, Front: f.name, CapacityRPS: capacity, DeadlineMS: float64(trial.Deadline.Milliseconds())}
	leave = func() error { return nil }
	if !f.averages {
		return trial, row, leave
	}
	inside, err := newContainer(max(1, b.Procs))
	if err != nil {
		row.WholeMachine = err.Error()
		return trial, row, leave
	}
	trial.Launch = inside.launch
	return trial, row, inside.close
}

// surge is how long the highest load lasts.
func (c *runCommand) surge(f front) time.Duration {
	if f.averages {
		return max(shortSurge, c.Step+settle, c.Step+c.WarmUp)
	}
	return max(shortSurge, c.Step+settle)
}

// rest is how long it is calm before each load after the highest. Some limits get
// over that one only when it is calm; a front that averages its CPU use would need
// another warm-up.
func rest(f front) time.Duration {
	if f.averages {
		return 0
	}
	return pause
}
