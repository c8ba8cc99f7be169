// Command proxybench says what "spillway proxy" costs, compared with no proxy, HAProxy and
// Caddy, in one run.
//
//	proxybench --spillway dist/bin/spillway
//
// It needs Linux with two processors, and the packages haproxy and caddy of Debian.
//
// Each proxy has the last processor to itself. The clients and the upstream, which
// are this process, share the first one: a client writes bytes that are made ahead and
// reads little of the answer, so that it is the proxy that is measured. All proxies run
// all the time, and take turns of a slice each: in a slice for throughput, as many
// requests as the clients get answered, one after the other on each connection; in one
// for latency, requests at a fixed rate that all can bear. A round has a slice of both
// kinds for each proxy. What is printed is the median of the rounds, and ratios are those
// of medians.
//
// Where the clients are slower than a proxy, its throughput is theirs. What it could do
// shows in the processor time that it takes for a request, which has its own column.
//
// Exit status: 0 if all is well, 2 for wrong usage, 3 if the machine is at fault.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// cli is the command line.
type cli struct {
	Spillway string        `default:"spillway" placeholder:"FILE" help:"The program to compare (default ${default})."`
	Rounds   int           `default:"5" placeholder:"N" help:"How many rounds (default ${default})."`
	Slice    time.Duration `default:"1s" placeholder:"DURATION" help:"How long a slice lasts (default ${default})."`
	Rate     float64       `default:"1000" placeholder:"N" help:"Requests per second in slices for latency (default ${default})."`
	Protocol []string      `default:"http1,grpc" placeholder:"NAME" enum:"http1,grpc" help:"http1, grpc or both (default ${default})."`
	Only     []string      `placeholder:"NAME" help:"Only these: none, haproxy, caddy, spillway-observe, spillway-enforce (default all)."`
	JSON     string        `name:"json" placeholder:"FILE" help:"Write what was measured to FILE."`
}

// Validate is called by the parser.
func (c *cli) Validate() error {
	switch {
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("--rounds is %d, must be 1 to 1000", c.Rounds)
	case c.Slice < 100*time.Millisecond || c.Slice > time.Minute:
		return fmt.Errorf("--slice is %v, must be 100ms to 1m", c.Slice)
	case !(c.Rate >= 10 && c.Rate <= 100_000):
		return fmt.Errorf("--rate is %v, must be 10 to 100000", c.Rate)
	}
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only has %q, must be of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	kong.Parse(&c, kong.Name("proxybench"), kong.Description("Says what proxies cost."),
		kong.Exit(func(status int) {
			if status != 0 {
				status = 2
			}
			os.Exit(status)
		}))
	if err := c.run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "proxybench: %v\n", err)
		stop()
		os.Exit(3) //nolint:gocritic // stop was called
	}
}

func (c *cli) run(ctx context.Context, stdout, stderr io.Writer) error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	cpus, err := machine.Separate()
	if err != nil {
		return err
	}
	result := Result{Go: runtime.Version(), Rate: c.Rate, SliceS: c.Slice.Seconds()}
	for _, name := range c.Protocol {
		p := protocols[name]
		rows, err := c.compare(ctx, p, cpus, stderr)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		result.Tables = append(result.Tables, Table{p.title, rows})
	}
	if err := result.write(stdout); err != nil || c.JSON == "" {
		return err
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.JSON, append(text, '\n'), 0o644) //nolint:gosec // no secret
}

// compare starts all candidates for one protocol, and measures them in rounds.
func (c *cli) compare(ctx context.Context, p protocol, cpus *machine.Affinity, progress io.Writer) ([]Row, error) {
	upstream, err := p.serve()
	if err != nil {
		return nil, err
	}
	defer upstream.Close()
	targets, err := c.start(ctx, p, cpus, upstream.Addr().String())
	defer stopAll(targets)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(targets))
	for i, t := range targets {
		rows[i].Name = t.name
		if err := c.slice(ctx, p, t, &rows[i], true); err != nil { // to warm up
			return nil, err
		}
	}
	for round := range c.Rounds {
		fmt.Fprintf(progress, "%s: round %d of %d\n", p.title, round+1, c.Rounds)
		for i, t := range targets {
			if err := c.slice(ctx, p, t, &rows[i], false); err != nil {
				return nil, err
			}
		}
	}
	return conclude(rows), nil
}

// slice measures one target once for each of both kinds.
func (c *cli) slice(ctx context.Context, p protocol, t *target, row *Row, forget bool) error {
	before := t.spent()
	quick, err := flood(ctx, p, t.address, c.Slice)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	cost := t.spent() - before
	slow, err := pace(ctx, p, t.address, c.Slice, c.Rate)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if forget {
		return nil
	}
	row.Rejected += quick.rejected + slow.rejected
	row.perSecond = append(row.perSecond, float64(quick.served)/quick.took.Seconds())
	row.cpu = append(row.cpu, float64(cost.Microseconds())/float64(max(1, quick.served)))
	row.busy = append(row.busy, cost.Seconds()/quick.took.Seconds())
	row.p50 = append(row.p50, slow.quantile(0.5))
	row.p99 = append(row.p99, slow.quantile(0.99))
	return nil
}
