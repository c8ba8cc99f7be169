package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed90641741/spillway/cmd/spillway/internal/drill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/report"
)

// drillCommand has the flags of "spillway drill". The parser calls its Validate.
type drillCommand struct {
	drill.Config
	Proxy  bool   `help:"Protect by \"spillway proxy\" in front of the backend: --protect=proxy."`
	JSON   string `name:"json" placeholder:"FILE" help:"Write all that was measured to FILE."`
	Report string `placeholder:"FILE.html" help:"Write a page with charts to FILE, which needs nothing but a browser."`
}

// Help is what the parser adds to the help of the command.
func (drillCommand) Help() string {
	return "The backend is a child process that listens on 127.0.0.1 and has one CPU. It gets 0.5 times its capacity, " +
		"then the overload, then 0.5 times again: once without Spillway, once with it in the caller, in the backend, in both, or in a proxy between them. " +
		"A retry-storm is an outage of the backend at 0.8 times its capacity instead. " +
		"Close other programs that need the CPU.\n\n" +
		"Exit status: 0 if Spillway kept its promise, 1 if it broke it, 2 for wrong usage, 3 if the machine is at fault, " +
		"130 if interrupted; what was measured by then is shown and written."
}

// run drills, and writes what came out to all that asked for it.
func (c *drillCommand) run(ctx context.Context, stdout, stderr io.Writer) (status int, err error) {
	if c.Proxy {
		if c.Protect != drill.ProtectCallers && c.Protect != drill.ProtectProxy {
			return 0, &drill.UsageError{Flag: "proxy", Problem: "goes without --protect=" + c.Protect}
		}
		c.Protect = drill.ProtectProxy
	}
	// Before the drill, so that a name that cannot be written costs no minute.
	outputs, err := c.open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, outputs.close()) }()
	result, err := c.Config.Run(ctx, stderr)
	if err != nil {
		return 0, err
	}
	if err := outputs.write(result, stdout); err != nil {
		return 0, err
	}
	switch {
	case result.Interrupted:
		return exitInterrupted, nil
	case !result.Passed():
		return exitBroken, nil
	}
	return exitOK, nil
}

// An output is a file and what writes a result to it.
type output struct {
	file  *os.File
	write func(io.Writer, *drill.Result) error
}

type outputs []output

func (c *drillCommand) open() (outputs, error) {
	var all outputs
	for _, o := range []struct {
		flag, name string
		write      func(io.Writer, *drill.Result) error
	}{
		{"json", c.JSON, func(w io.Writer, r *drill.Result) error { return r.WriteJSON(w) }},
		{"report", c.Report, report.Write},
	} {
		if o.name == "" {
			continue
		}
		f, err := os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE, 0o644) // emptied only when there is something new
		if err != nil {
			return nil, errors.Join(&drill.UsageError{Flag: o.flag, Problem: fmt.Sprintf("cannot be written: %v", err)}, all.close())
		}
		all = append(all, output{f, o.write})
	}
	return all, nil
}

func (o outputs) write(r *drill.Result, stdout io.Writer) error {
	if err := r.WriteTable(stdout); err != nil {
		return err
	}
	for _, out := range o {
		_ = out.file.Truncate(0) // what is not a regular file cannot, and need not
		if err := out.write(out.file, r); err != nil {
			return fmt.Errorf("writing %s: %w", out.file.Name(), err)
		}
		fmt.Fprintf(stdout, "written: %s\n", out.file.Name())
	}
	return nil
}

func (o outputs) close() error {
	var err error
	for _, out := range o {
		err = errors.Join(err, out.file.Close())
	}
	return err
}
