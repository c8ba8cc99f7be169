package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// module is the path of the module in the root of the repository.
const module = "github.com/seed90641741/spillway"

// runCommand has the flags of a run. The parser calls its Validate.
type runCommand struct {
	Name      string        `required:"" placeholder:"NAME" help:"Name of the record."`
	Count     int           `default:"6" placeholder:"N" help:"Runs of each benchmark, at least 6 (default ${default})."`
	BenchTime time.Duration `name:"benchtime" default:"200ms" placeholder:"DURATION" help:"How long a benchmark runs each time (default ${default})."`
	Skip      string        `placeholder:"PATTERN" help:"Benchmarks to leave out, as of go test -skip."`
	Package   []string      `arg:"" help:"Packages."`
}

// Validate returns an error that names the first flag that is wrong.
func (c *runCommand) Validate() error {
	switch {
	case c.Count < 6 || c.Count > 100: // below 6 a median has no interval of 95 %
		return fmt.Errorf("--count is %d, must be from 6 to 100", c.Count)
	case c.BenchTime < time.Millisecond || c.BenchTime > time.Minute:
		return fmt.Errorf("--benchtime is %v, must be from 1ms to 1m", c.BenchTime)
	}
	return nil
}

// Run runs the benchmarks, one run of all after the other, so that a busy minute of the machine is
// in the figures of all. It writes the record and the pages.
func (c *runCommand) Run(ctx context.Context) error {
	r := &Record{Name: c.Name, Time: time.Now().UTC().Truncate(time.Second), Machine: machine.Describe(), Count: c.Count, BenchTime: c.BenchTime.String()}
	if err := r.commit(ctx); err != nil {
		return err
	}
	if _, err := c.test(ctx, "^$"); err != nil { // compiles, before the pressure is measured
		return err
	}
	pressure := machine.Pressure()
	var all bytes.Buffer
	for i := range c.Count {
		fmt.Fprintf(os.Stderr, "run %d of %d\n", i+1, c.Count)
		out, err := c.test(ctx, ".")
		if err != nil {
			return err
		}
		all.Write(out)
	}
	r.CPUPressure = pressure()
	var err error
	if r.Benchmarks, err = summarize(&all); err != nil {
		return err
	}
	if err := r.write("."); err != nil {
		return err
	}
	return writePages(".")
}

// test runs the benchmarks that match once.
func (c *runCommand) test(ctx context.Context, match string) ([]byte, error) {
	args := []string{"test", "-run", "^$", "-bench", match, "-benchmem", "-count", "1", "-benchtime", c.BenchTime.String()}
	if c.Skip != "" {
		args = append(args, "-skip", c.Skip)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, c.Package...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go test: %w: %s", err, out)
	}
	return out, nil
}

// commit finds out what was measured.
func (r *Record) commit(ctx context.Context) error {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	r.Commit, r.Modified = strings.TrimSpace(string(head)), len(changes) > 0
	return nil
}

// summarize returns the medians of what benchmarks have printed, in the order in which they ran.
func summarize(printed io.Reader) ([]Benchmark, error) {
	type key struct{ pkg, name, unit string }
	var all []Benchmark
	index := map[[2]string]int{}
	values := map[key][]float64{}
	reader := benchfmt.NewReader(printed, "go test")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			if bad, ok := reader.Result().(*benchfmt.SyntaxError); ok {
				return nil, bad
			}
			continue
		}
		b := Benchmark{Package: below(result.GetConfig("pkg")), Name: nameOf(result.Name), Units: map[string]Median{}}
		if _, known := index[[2]string{b.Package, b.Name}]; !known {
			index[[2]string{b.Package, b.Name}] = len(all)
			all = append(all, b)
		}
		for _, v := range result.Values {
			value, unit := v.Value, v.Unit
			if v.OrigUnit != "" { // such as ns/op, which the reader turns into sec/op
				value, unit = v.OrigValue, v.OrigUnit
			}
			k := key{b.Package, b.Name, unit}
			values[k] = append(values[k], value)
		}
	}
	for k, v := range values {
		s := benchmath.AssumeNothing.Summary(benchmath.NewSample(v, &benchmath.DefaultThresholds), 0.95)
		all[index[[2]string{k.pkg, k.name}]].Units[k.unit] = Median{s.Center, max(s.Lo, v[0]), min(s.Hi, v[len(v)-1]), v[0]}
	}
	if len(all) == 0 && reader.Err() == nil {
		return nil, errors.New("there was no benchmark to run")
	}
	return all, reader.Err()
}

// below returns the path of a package below the root of the repository.
func below(pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// nameOf is the name of a benchmark without the number of processors, which the machine has.
func nameOf(n benchfmt.Name) string {
	base, parts := n.Parts()
	if last := len(parts) - 1; last >= 0 && parts[last][0] == '-' {
		parts = parts[:last]
	}
	return string(base) + string(bytes.Join(parts, nil))
}
