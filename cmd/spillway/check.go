package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// checkCommand has the arguments of "spillway check".
type checkCommand struct {
	output
	configFile
	Live bool `help:"Also try to listen on the addresses and to connect to the endpoints, from this machine."`
}

func (checkCommand) Help() string {
	return "Lists all errors of the configuration, and warns of probable mistakes. " +
		"Exit status: 0 without errors, 1 if an endpoint cannot be reached, 2 if the configuration is wrong, 3 if a file that it names " +
		"cannot be used or an address cannot be listened on. Steps that need one that failed are skipped."
}

// A step is the result of one check.
type step struct {
	Name     string   `json:"step"`
	OK       bool     `json:"ok"`
	Detail   string   `json:"detail,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Hint     string   `json:"hint,omitempty"`

	status int // with which the program exits where it fails
}

func (c *checkCommand) Run(ctx context.Context, w streams) error {
	if err := c.named(); err != nil {
		return err
	}
	return reportSteps(&c.output, w, c.steps(ctx))
}

// reportSteps writes steps, and returns the exit status.
func reportSteps(o *output, w streams, steps []step) error {
	var verdict error
	if i := slices.IndexFunc(steps, func(s step) bool { return !s.OK }); i >= 0 {
		verdict = status(steps[i].status)
	}
	return o.tell(w, func(w io.Writer) error { return writeSteps(w, steps) }, steps, verdict)
}

func (c *checkCommand) steps(ctx context.Context) (all []step) {
	r := readingOf(c.File)
	wanted, err := parsed(&r, config.Parse)
	if err != nil {
		return []step{schemaStep(err, "spillway schema describes the file; docs/proxy.md has examples")}
	}
	d := wanted.Defaulted()
	counts := fmt.Sprintf("%d listeners, %d clusters, %d routes", len(d.Listeners), len(d.Clusters), len(d.Routes))
	if n := len(d.Mongo); n > 0 {
		counts += fmt.Sprintf(", %d of MongoDB", n)
	}
	all = append(all, step{Name: "schema", OK: true, Detail: fmt.Sprintf("%s is good: %s, mode %s", c.File, counts, d.Mode)})
	all = append(all, warningSteps(&r, wanted.Warnings())...)
	unusable := gateway.Files(wanted)
	if err := exporters.Check(wanted.Otel); err != nil {
		unusable = append(unusable, err)
	}
	all = append(all, filesStep(unusable, wanted.Files()))
	if !c.Live {
		return all
	}
	all = append(all,
		addressesStep(gateway.Bind(ctx, wanted)),
		newStep("endpoints", exitBroken, gateway.Reach(ctx, wanted), "all endpoints can be reached",
			"is the service up, the name right, and the way open from here? The proxy starts without it, and answers 502"))
	if n := len(wanted.Quotas); n > 0 {
		all = append(all, newStep("quotas", exitBroken, quotas.Try(ctx, wanted), fmt.Sprintf("%d engines of quotas can be used", n),
			"the proxy starts without them, and grants each customer its limit divided by tasks"))
	}
	return all
}

// warningSteps returns a step of warnings, if there are any.
func warningSteps(r *reading, all strict.Errors) []step {
	if len(all) == 0 {
		return nil
	}
	all = strict.Source{Name: r.file, Text: r.text}.Locate(all)
	return []step{{Name: "warnings", OK: true, Warnings: texts(all.Unwrap()), Hint: "it starts with these all the same"}}
}

func filesStep(unusable []error, files []string) step {
	return newStep("files", exitEnvironment, unusable, fmt.Sprintf("%d files can be used", len(files)),
		"paths are relative to the directory that the program is started in; it must be allowed to read them")
}

func addressesStep(unusable []error) step {
	return newStep("addresses", exitEnvironment, unusable, "all addresses can be listened on",
		"an address is in use as long as a program with this very file runs; ports below 1024 need CAP_NET_BIND_SERVICE")
}

func schemaStep(err error, hint string) step {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		hint = "the file is looked for in the directory that this was started in"
	}
	errs := []error{err}
	if all, ok := errors.AsType[strict.Errors](err); ok {
		errs = all.Unwrap()
	}
	return newStep("schema", exitUsage, errs, "", hint)
}

func newStep(name string, status int, errs []error, detail, hint string) step {
	if len(errs) > 0 {
		return step{Name: name, Problems: texts(errs), Hint: hint, status: status}
	}
	return step{Name: name, OK: true, Detail: detail}
}

func texts(errs []error) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func writeSteps(w io.Writer, all []step) error {
	var lines bytes.Buffer
	line := func(mark, name, text string) {
		fmt.Fprintf(&lines, "%-5s %-10s %s\n", mark, name, strings.ReplaceAll(text, "\n", "\n      "))
	}
	for _, s := range all {
		if s.Detail != "" {
			line("ok", s.Name, s.Detail)
		}
		for _, p := range s.Problems {
			line("FAIL", s.Name, p)
		}
		for _, p := range s.Warnings {
			line("warn", s.Name, p)
		}
		if s.Hint != "" {
			line("", "", "hint: "+s.Hint)
		}
	}
	_, err := lines.WriteTo(w)
	return err
}
