package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type result struct {
	mutants []*mutant
	known   survivors
	all     bool // mutants and tests were run
}

// A test is a test function, an example, or the seeds of a fuzz target.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// A runner runs a test binary with its mutants.
type runner struct {
	binary, dir, log string
	tests            []*test
}

// quick is how long the tests of a mutant may take together to be run in one process. Longer
// ones follow one by one, as most mutants are dead by then.
const quick = time.Second

func examine(dir, only, which string, workers int) (found *result, err error) {
	wanted, err := regexp.Compile(which)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	pkg, binary, mutants, err := build(dir, work)
	if err != nil {
		return nil, err
	}
	r := &runner{binary: binary, dir: pkg.Dir, log: filepath.Join(work, "log")}
	if err := r.measure(only); err != nil {
		return nil, err
	}
	mutants = slices.DeleteFunc(mutants, func(m *mutant) bool { return !wanted.MatchString(m.at + " " + m.change) })
	todo := make(chan *mutant)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for m := range todo {
				m.fate = r.fate(m.id)
			}
		})
	}
	for _, m := range mutants {
		todo <- m
	}
	close(todo)
	wait.Wait()
	return &result{mutants: mutants}, nil
}

// measure runs each test alone, without a mutant, and notes how long it takes and which
// mutants it reaches. A test that fails alone can say nothing about a mutant.
func (r *runner) measure(only string) error {
	out, err := r.command(context.Background(), "-test.list", cmp.Or(only, ".")).Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		if err := os.WriteFile(r.log, nil, 0o600); err != nil {
			return err
		}
		start := time.Now()
		cmd := r.command(context.Background(), "-test.short", "-test.run", "^"+name+"$")
		cmd.Env = append(os.Environ(), "MUTANTS_LOG="+r.log)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s fails without a mutant: %w\n%s", name, err, out)
		}
		t := &test{name: name, took: time.Since(start), reaches: map[int]bool{}}
		if err := t.read(r.log); err != nil {
			return err
		}
		r.tests = append(r.tests, t)
	}
	slices.SortFunc(r.tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

func (t *test) read(log string) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		t.reaches[id] = true
	}
	return nil
}

// fate runs the tests that reach a mutant, until one fails.
func (r *runner) fate(id int) fate {
	found := fateUnreached
	var names []string
	var sum time.Duration
	for _, t := range r.tests {
		if !t.reaches[id] {
			continue
		}
		if len(names) > 0 && sum+t.took > quick {
			if found = r.try(id, names, sum); found != fateLived {
				return found
			}
			names, sum = nil, 0
		}
		names, sum = append(names, t.name), sum+t.took
	}
	if len(names) > 0 {
		found = r.try(id, names, sum)
	}
	return found
}

// try runs tests with a timeout of ten times what they took, and some seconds.
func (r *runner) try(id int, names []string, took time.Duration) fate {
	ctx, cancel := context.WithTimeout(context.Background(), 10*took+3*time.Second)
	defer cancel()
	cmd := r.command(ctx, "-test.short", "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id))
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fateTimedOut
	case err != nil:
		return fateKilled
	}
	return fateLived
}

func (r *runner) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Dir, cmd.WaitDelay = r.dir, time.Second
	return cmd
}
