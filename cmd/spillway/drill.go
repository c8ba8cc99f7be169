package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/costdrill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/report"
)

// drillCommand has the flags of "spillway drill". The parser calls its Validate.
type drillCommand struct {
	drill.Config
	Output string `enum:"text,full,json" default:"text" placeholder:"FORMAT" help:"Output format: text, full (with a table of all figures) or json (default ${default})."`
	outputFile
	Own     load.Service `embed:"" group:"Load on a service of your own; the flags above do not apply to it, but for --mix:"`
	Quota   bool         `help:"Compare a quota of requests with a quota of learned processor time, for two customers. Of the other flags only --seed, --output and --json-file apply."`
	Proxy   bool         `help:"Protect by \"spillway proxy\" in front of the backend: --protect=proxy."`
	Report  string       `placeholder:"FILE.html" help:"Write a page with charts and all figures to FILE, which works without a network (default a new file in the temporary directory, with text output)."`
	Verbose bool         `help:"Print lines of progress also where standard error is no terminal."`
}

func (drillCommand) Help() string {
	return "The backend is a child process that listens on 127.0.0.1 and has one CPU. The work of a call is sized to this machine. " +
		"It gets 0.5 times its capacity, " +
		"then the overload, then 0.5 times again: once without Spillway, once with it in the caller, in the backend, in both, or in a proxy between them. " +
		"A retry-storm is an outage of the backend at 0.8 times its capacity instead. " +
		"If a check fails and the machine was too busy, the run with Spillway is repeated once.\n\n" +
		"Exit status: 0 if all checks passed, 1 if one failed, 2 for wrong usage, 3 if one failed but the machine was too busy to measure, twice, " +
		"130 if interrupted; the results so far are shown and written.\n\n" +
		"With --target=URL, a service of your own gets the load instead: from workers that wait for their answers, at a bounded rate. " +
		"The result counts the answers of each criticality; the exit status is 1 if no request was served.\n\n" +
		"With --quota, two customers with the same quota call a backend. A call of one takes 10 times as much processor time. " +
		"The quota counts requests in a first run, and learned processor time in a second one."
}

// Run runs the drill and writes its result in all formats that the flags select.
func (c *drillCommand) Run(ctx context.Context, w streams) error {
	switch {
	case c.Own.Target != "" && c.Quota:
		return &process.UsageError{Flag: "quota", Problem: "goes without --target"}
	case c.Own.Target != "":
		return c.runOwn(ctx, w)
	case c.Quota:
		return c.runQuota(ctx, w)
	}
	if c.Proxy {
		if c.Protect != drill.ProtectBoth && c.Protect != drill.ProtectProxy {
			return &process.UsageError{Flag: "proxy", Problem: "goes without --protect=" + c.Protect}
		}
		c.Protect = drill.ProtectProxy
	}
	var result *drill.Result
	page := file{"report", c.Report, func(w io.Writer) error { return report.Write(w, result) }}
	err := c.try(page)
	if err != nil {
		return err
	}
	progress, end := c.progress(w)
	result, err = c.Config.Run(ctx, progress)
	end()
	if err != nil {
		return err
	}
	return c.tell(w, c.Output, c.text(result), result, verdictOf(result), page)
}

// progress returns where to write lines of progress, and what ends them.
func (c *drillCommand) progress(w streams) (io.Writer, func()) {
	if c.Verbose {
		return w.stderr, func() {}
	}
	return progressOn(w.stderr)
}

// text returns what prints a result for people. The short form ends with the path of a page that has the rest.
func (c *drillCommand) text(r *drill.Result) printer {
	if c.Output == "full" {
		return r.WriteTable
	}
	return func(w io.Writer) error {
		if err := r.WriteSummary(w); err != nil || c.Report != "" {
			return err
		}
		name, err := temporaryReport(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "All figures, with charts: %s\n", name)
		return err
	}
}

// temporaryReport writes the page of a result to a new file in the temporary directory.
func temporaryReport(r *drill.Result) (string, error) {
	f, err := os.CreateTemp("", "spillway-drill-*.html")
	if err != nil {
		return "", fmt.Errorf("creating the report: %w", err)
	}
	if err := errors.Join(report.Write(f, r), f.Close()); err != nil {
		return "", fmt.Errorf("writing the report: %w", err)
	}
	return f.Name(), nil
}

// verdictOf returns what a drill says for the exit status, nil if it passed.
func verdictOf(r *drill.Result) error {
	if r.Inconclusive != "" {
		return status(exitEnvironment)
	}
	return outcome(r.Interrupted, r.Passed())
}

// withoutReport prepares the output of a kind of drill that has no page.
func (c *drillCommand) withoutReport(flag string) error {
	if c.Report != "" {
		return &process.UsageError{Flag: "report", Problem: "goes without --" + flag}
	}
	return c.try()
}

// runQuota compares a quota that counts requests to one that charges learned costs.
func (c *drillCommand) runQuota(ctx context.Context, w streams) error {
	if err := c.withoutReport("quota"); err != nil {
		return err
	}
	progress, end := c.progress(w)
	result, err := costdrill.Run(ctx, c.Seed, progress)
	end()
	switch {
	case ctx.Err() != nil:
		return status(exitInterrupted)
	case err != nil:
		return err
	}
	verdict := outcome(false, result.Passed())
	if !result.Compares() {
		verdict = status(exitEnvironment)
	}
	return c.tell(w, c.Output, result.WriteTable, result, verdict)
}

// runOwn sends load to the user's own service, and writes what it answered.
func (c *drillCommand) runOwn(ctx context.Context, w streams) error {
	if err := c.withoutReport("target"); err != nil {
		return err
	}
	result, err := c.Own.Run(ctx, c.Mix)
	if err != nil {
		return err
	}
	return c.tell(w, c.Output, result.WriteTable, result, outcome(ctx.Err() != nil, result.Answered()))
}
