package main

import (
	"context"
	"io"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/costdrill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/report"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/target"
)

// drillCommand has the flags of "spillway drill". The parser calls its Validate.
type drillCommand struct {
	drill.Config
	output
	Own    target.Config `embed:"" group:"Load on a service of your own; the flags above do not apply to it, but for --mix:"`
	Quota  bool          `help:"Compare a quota of requests with a quota of learned processor time, for two customers. Of the other flags only --seed, --output and --json-file apply."`
	Proxy  bool          `help:"Protect by \"spillway proxy\" in front of the backend: --protect=proxy."`
	Report string        `placeholder:"FILE.html" help:"Write a page with charts to FILE, which works without a network."`
}

func (drillCommand) Help() string {
	return "The backend is a child process that listens on 127.0.0.1 and has one CPU. It gets 0.5 times its capacity, " +
		"then the overload, then 0.5 times again: once without Spillway, once with it in the caller, in the backend, in both, or in a proxy between them. " +
		"A retry-storm is an outage of the backend at 0.8 times its capacity instead. " +
		"Close other programs that need the CPU.\n\n" +
		"Exit status: 0 if all checks passed, 1 if one failed, 2 for wrong usage, 3 if one failed but the machine was too busy to measure, " +
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
	if result, err = c.Config.Run(ctx, w.stderr); err != nil {
		return err
	}
	return c.tell(w, result.WriteTable, result, verdictOf(result), page)
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
	result, err := costdrill.Run(ctx, c.Seed, w.stderr)
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
	return c.tell(w, result.WriteTable, result, verdict)
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
	return c.tell(w, result.WriteTable, result, outcome(ctx.Err() != nil, result.Answered()))
}
