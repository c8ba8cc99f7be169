package main

import (
	"fmt"
	"io"
	"os"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer"
)

// importCommand has the commands of "spillway import".
type importCommand struct {
	Grpc  importGRPC  `cmd:"" help:"Import a gRPC service config: retries, throttling, timeouts, health checks of methods."`
	Envoy importEnvoy `cmd:"" help:"Import clusters, their limits and health checks, and routes with their retries of Envoy."`
}

// Help is what the parser adds to the help of the command.
func (importCommand) Help() string {
	return "The configuration is written to the standard output, and what could not be carried over, or means something else, to the standard " +
		"error: each with the path, the value and the reason."
}

type importGRPC struct {
	importing
	File string `arg:"" help:"A service config in JSON."`
}

// Run imports.
func (c *importGRPC) Run(w streams) error {
	docs, err := documents(c.File)
	if err != nil {
		return err
	}
	result, err := importer.GRPC(docs[0], c.options())
	return c.conclude(w, result, err)
}

type importEnvoy struct {
	importing
	Files []string `arg:"" help:"Bootstraps, config dumps, clusters or route configurations, in YAML or JSON."`
}

// Run imports.
func (c *importEnvoy) Run(w streams) error {
	docs, err := documents(c.Files...)
	if err != nil {
		return err
	}
	result, err := importer.Envoy(docs, c.options())
	return c.conclude(w, result, err)
}

func documents(files ...string) (docs []importer.Document, err error) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, usage{err}
		}
		docs = append(docs, importer.Document{Name: name, Text: text})
	}
	return docs, nil
}

// importing has the flags of all imports.
type importing struct {
	output
	Listen   string `placeholder:"HOST:PORT" help:"Where clients connect to, if no file says it (default 127.0.0.1:8000)."`
	Upstream string `placeholder:"HOST:PORT" help:"The endpoint of clusters without one (default 127.0.0.1:8080)."`
	Strict   bool   `help:"Exit with 1 if anything was left out."`
}

func (c *importing) options() importer.Options {
	return importer.Options{Listen: c.Listen, Upstream: c.Upstream}
}

// conclude writes what came of an import.
func (c *importing) conclude(w streams, result *importer.Result, err error) error {
	if err != nil {
		return usage{err}
	}
	text, err := config.Format(result.Config)
	if err != nil {
		return err
	}
	whole := struct {
		Config string `json:"config"`
		*importer.Result
	}{string(text), result}
	words := func(stdout io.Writer) error {
		for _, n := range result.Notes {
			fmt.Fprintln(w.stderr, n)
		}
		fmt.Fprintf(w.stderr, "%d values were carried over\n", len(result.Carried))
		_, err := stdout.Write(text)
		return err
	}
	if err := c.tell(w, words, indented(whole)); err != nil {
		return err
	}
	for _, n := range result.Notes {
		if c.Strict && n.Left {
			return exit(exitBroken)
		}
	}
	return nil
}
