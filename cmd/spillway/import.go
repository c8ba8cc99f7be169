package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer"
)

// importCommand has the commands of "spillway import".
type importCommand struct {
	Grpc    importGRPC    `cmd:"" help:"Import a gRPC service config: retries, throttling, timeouts, health checks of methods."`
	Envoy   importEnvoy   `cmd:"" help:"Import listeners with TLS, clusters, their limits and health checks, and routes with their retries of Envoy."`
	Mongodb importMongoDB `cmd:"" help:"Import a connection string, or the configuration or parameters of a MongoDB server."`
}

func (importCommand) Help() string {
	return "Writes the configuration to standard output. Standard error lists the settings that were not imported, or that have another meaning: " +
		"each with its path, value and reason, security settings first. If a security setting is left out, or if nothing can be imported, " +
		"no configuration is written, and the exit status is 1."
}

type importGRPC struct {
	importing
	File string `arg:"" help:"A service config in JSON."`
}

func (c *importGRPC) Run(w streams) error {
	return c.run(w, []string{c.File}, importer.Options{}, func(docs []importer.Document, o importer.Options) (*importer.Result, error) {
		return importer.GRPC(docs[0], o)
	})
}

type importEnvoy struct {
	importing

	Certificates string   `placeholder:"DIR" help:"Directory for certificates and keys that the files contain (inline_string, inline_bytes) or have in environment variables: each is written to a file there, keys with mode 0600. No file is overwritten."`
	Files        []string `arg:"" help:"Bootstraps, config dumps, clusters or route configurations, in YAML or JSON."`
}

func (c *importEnvoy) Run(w streams) (err error) {
	o := importer.Options{Environment: os.LookupEnv}
	if c.Certificates != "" {
		if o.Certificates, err = filepath.Abs(c.Certificates); err != nil {
			return usage{fmt.Errorf("--certificates: %w", err)}
		}
	}
	return c.run(w, c.Files, o, importer.Envoy)
}

type importMongoDB struct {
	importing

	Files []string `arg:"" help:"Files with a connection string, a configuration of mongod or mongos, or an answer to getParameter."`
}

func (c *importMongoDB) Run(w streams) error {
	return c.run(w, c.Files, importer.Options{}, importer.MongoDB)
}

// importing has the flags of all imports.
type importing struct {
	output
	Listen   string `placeholder:"HOST:PORT" help:"Address for clients, if no file has one (default 127.0.0.1:8000; of MongoDB 127.0.0.1:27018)."`
	Upstream string `placeholder:"HOST:PORT" help:"Endpoint of clusters without one (default 127.0.0.1:8080; of MongoDB 127.0.0.1:27017)."`
	Strict   bool   `help:"Exit with 1 if anything was left out."`
	Lossy    bool   `help:"Write the configuration even if security settings were left out."`
}

// run imports files with the options o, and those of the flags of all imports, and writes the result.
func (c *importing) run(
	w streams, files []string, o importer.Options, imports func([]importer.Document, importer.Options) (*importer.Result, error),
) error {
	var docs []importer.Document
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return usage{err}
		}
		docs = append(docs, importer.Document{Name: name, Text: text})
	}
	o.Listen, o.Upstream = c.Listen, c.Upstream
	result, err := imports(docs, o)
	if err != nil {
		return usage{err}
	}
	lost := result.Err()
	text, err := c.put(result)
	if err != nil {
		return err
	}
	whole := struct {
		Config string `json:"config"`
		*importer.Result
	}{string(text), result}
	words := func(stdout io.Writer) error {
		reportImport(w.stderr, result)
		_, err := stdout.Write(text)
		return err
	}
	if err := c.tell(w, words, whole, nil); err != nil {
		return err
	}
	if text == nil {
		fmt.Fprintf(w.stderr, "spillway: %v; no configuration is written. With --lossy one is, if there is any: add what is missing before it serves\n", lost)
	}
	return outcome(false, lost == nil && !(c.Strict && slices.ContainsFunc(result.Notes, func(n importer.Note) bool { return n.Left })))
}

// put writes the files of a configuration and returns its text, nil if it must not be used.
func (c *importing) put(result *importer.Result) ([]byte, error) {
	if result.Config == nil || result.Err() != nil && !c.Lossy {
		result.Files = nil // no configuration names them
		return nil, nil
	}
	text, err := config.Format(result.Config)
	if err != nil {
		return nil, err
	}
	return text, writeCertificates(result.Files)
}

func reportImport(w io.Writer, result *importer.Result) {
	for _, line := range result.Lines() {
		fmt.Fprintln(w, line)
	}
	for _, f := range result.Files {
		fmt.Fprintf(w, "note: %s contains a certificate or key of the input\n", f.Name)
	}
	left := result.Counts()
	fmt.Fprintf(w, "%d values were carried over; left out: %d of %v, %d of %v, %d of %v, %d of %v\n", len(result.Carried),
		left[importer.Security], importer.Security, left[importer.Traffic], importer.Traffic,
		left[importer.Limit], importer.Limit, left[importer.Detail], importer.Detail)
}
