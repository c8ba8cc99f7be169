package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/importer"
)

// importCommand has the commands of "spillway import".
type importCommand struct {
	Listen   string `placeholder:"HOST:PORT" help:"Where clients connect to, if no file says it (default 127.0.0.1:8000)."`
	Upstream string `placeholder:"HOST:PORT" help:"The endpoint of clusters without one (default 127.0.0.1:8080)."`
	Strict   bool   `help:"Exit with 1 if anything was left out."`
	JSON     bool   `name:"json" help:"Print the configuration and the report as one JSON object."`

	Grpc struct {
		File string `arg:"" help:"A service config in JSON."`
	} `cmd:"" help:"Import a gRPC service config: retries, throttling, timeouts, health checks of methods."`
	Envoy struct {
		Files []string `arg:"" help:"Bootstraps, config dumps, clusters or route configurations, in YAML or JSON."`
	} `cmd:"" help:"Import clusters, their limits and health checks, and routes with their retries of Envoy."`
	Aws struct {
		Files   []string `arg:"" optional:"" help:"Lines of an environment, or configuration files of the SDKs (default: the environment of this command)."`
		Profile string   `default:"default" help:"Of a configuration file (default ${default})."`
	} `cmd:"" help:"Import how SDKs of AWS retry."`
}

// Help is what the parser adds to the help of the command.
func (importCommand) Help() string {
	return "The configuration is written to the standard output, and what could not be carried over, or means something else, to the standard " +
		"error: each with the path, the value and the reason."
}

func (c *importCommand) run(command string, stdout, stderr io.Writer) (status int, err error) {
	result, err := c.result(command)
	if err != nil {
		return 0, usage{err}
	}
	text, err := config.Format(result.Config)
	if err != nil {
		return 0, err
	}
	for _, n := range result.Notes {
		if c.Strict && n.Left {
			status = exitBroken
		}
	}
	if c.JSON {
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return status, e.Encode(struct {
			Config string `json:"config"`
			*importer.Result
		}{string(text), result})
	}
	for _, n := range result.Notes {
		fmt.Fprintln(stderr, n)
	}
	fmt.Fprintf(stderr, "%d values were carried over\n", len(result.Carried))
	_, err = stdout.Write(text)
	return status, err
}

func (c *importCommand) result(command string) (*importer.Result, error) {
	o := importer.Options{Listen: c.Listen, Upstream: c.Upstream}
	switch {
	case strings.HasPrefix(command, "import grpc"):
		docs, err := documents(c.Grpc.File)
		if err != nil {
			return nil, err
		}
		return importer.GRPC(docs[0], o)
	case strings.HasPrefix(command, "import envoy"):
		docs, err := documents(c.Envoy.Files...)
		if err != nil {
			return nil, err
		}
		return importer.Envoy(docs, o)
	default:
		docs, err := documents(c.Aws.Files...)
		if err != nil {
			return nil, err
		}
		if len(docs) == 0 {
			docs = []importer.Document{{Name: "environment", Text: environment()}}
		}
		return importer.AWS(docs, c.Aws.Profile, o)
	}
}

// environment is what concerns AWS of that of this program.
func environment() []byte {
	var lines strings.Builder
	for _, line := range os.Environ() {
		if strings.HasPrefix(line, "AWS_") {
			fmt.Fprintln(&lines, strings.ReplaceAll(line, "\n", " "))
		}
	}
	return []byte(lines.String())
}

func documents(files ...string) (docs []importer.Document, err error) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, importer.Document{Name: name, Text: text})
	}
	return docs, nil
}
