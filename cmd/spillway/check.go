package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/otel"
)

// checkCommand has the arguments of "spillway check".
type checkCommand struct {
	output
	configFile
	File string `arg:"" optional:"" help:"A configuration of spillway proxy."`
	Live bool   `help:"Try also whether the addresses can be listened on and the endpoints be reached, from here and now."`
}

// Help is what the parser adds to the help of the command.
func (checkCommand) Help() string {
	return "Exit status: 0 if all is well, 1 if an endpoint cannot be reached, 2 if the configuration is wrong, 3 if files that it names " +
		"cannot be used or addresses not be listened on. The first step that fails is the last but for those that do not need it."
}

// A step is one thing that is checked.
type step struct {
	Name     string   `json:"step"`
	OK       bool     `json:"ok"`
	Detail   string   `json:"detail,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Hint     string   `json:"hint,omitempty"`

	status int // with which the program exits where it fails
}

// Run checks, and prints the steps.
func (c *checkCommand) Run(ctx context.Context, w streams) error {
	if err := c.named(&c.File); err != nil {
		return err
	}
	steps := c.steps(ctx)
	if err := c.tell(w, func(w io.Writer) error { return writeSteps(w, steps) }, indented(steps)); err != nil {
		return err
	}
	for _, s := range steps {
		if !s.OK {
			return exit(s.status)
		}
	}
	return nil
}

// steps checks one thing after the other.
func (c *checkCommand) steps(ctx context.Context) (all []step) {
	wanted, err := config.Open(c.File)
	if err != nil {
		return []step{schemaStep(err)}
	}
	d := wanted.Defaulted()
	counts := fmt.Sprintf("%d listeners, %d clusters, %d routes", len(d.Listeners), len(d.Clusters), len(d.Routes))
	if n := len(d.Mongo); n > 0 {
		counts += fmt.Sprintf(", %d of MongoDB", n)
	}
	all = append(all, step{Name: "schema", OK: true, Detail: fmt.Sprintf("%s is good: %s, mode %s", c.File, counts, d.Mode)})
	unusable := gateway.Files(wanted)
	if err := otel.Check(wanted.Otel); err != nil {
		unusable = append(unusable, err)
	}
	all = append(all, newStep("files", exitEnvironment, unusable, fmt.Sprintf("%d files can be used", len(wanted.Files())),
		"paths are relative to the directory that the proxy is started in; it must be allowed to read them"))
	if !c.Live {
		return all
	}
	return append(all,
		newStep("addresses", exitEnvironment, gateway.Bind(ctx, wanted), "all addresses can be listened on",
			"an address is in use as long as a proxy with this very file runs; ports below 1024 need CAP_NET_BIND_SERVICE"),
		newStep("endpoints", exitBroken, gateway.Reach(ctx, wanted), "all endpoints can be reached",
			"is the service up, the name right, and the way open from here? The proxy starts without it, and answers 502"))
}

// schemaStep is what is wrong with the file itself.
func schemaStep(err error) step {
	hint := "spillway schema describes the file; docs/proxy.md has examples"
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		hint = "the file is looked for in the directory that this was started in"
	}
	return step{Name: "schema", Problems: []string{err.Error()}, Hint: hint, status: exitUsage}
}

func newStep(name string, status int, errs []error, detail, hint string) step {
	s := step{Name: name, OK: len(errs) == 0, Detail: detail, status: status}
	for _, err := range errs {
		s.Problems = append(s.Problems, err.Error())
	}
	if !s.OK {
		s.Detail, s.Hint = "", hint
	}
	return s
}

func writeSteps(w io.Writer, all []step) error {
	var text bytes.Buffer
	for _, s := range all {
		s.write(&text)
	}
	_, err := text.WriteTo(w)
	return err
}

func (s *step) write(w io.Writer) {
	if s.OK {
		fmt.Fprintf(w, "ok    %-10s %s\n", s.Name, s.Detail)
		return
	}
	for _, p := range s.Problems {
		fmt.Fprintf(w, "FAIL  %-10s %s\n", s.Name, strings.ReplaceAll(p, "\n", "\n      "))
	}
	fmt.Fprintf(w, "      %-10s hint: %s\n", "", s.Hint)
}
