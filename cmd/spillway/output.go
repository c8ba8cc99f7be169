package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// output has the flags for the output of a command. They mean the same in all commands.
type output struct {
	Output string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Output format: text or json (default ${default})."`
	outputFile
}

func (o *output) tell(w streams, text printer, result any, verdict error, others ...file) error {
	return o.outputFile.tell(w, o.Output, text, result, verdict, others...)
}

// outputFile is the file that a command writes in addition to its output.
type outputFile struct {
	JSONFile string `name:"json-file" placeholder:"FILE" help:"Also write the result to FILE as JSON."`
}

// A printer writes a result in one format.
type printer func(io.Writer) error

// tell writes a result and all others to their files, and prints it, as text or, with the format json, as JSON. What fails does
// not keep it from the rest. It returns verdict, which is what the result means for the exit status, unless something failed.
func (o *outputFile) tell(w streams, format string, text printer, result any, verdict error, others ...file) error {
	asJSON := func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(result)
	}
	if format == "json" {
		text = asJSON
	}
	var failed error
	for _, f := range append(others, file{"json-file", o.JSONFile, asJSON}) {
		failed = errors.Join(failed, f.write(w.stderr))
	}
	// Standard output comes last: a closed pipe ends the program.
	if failed = errors.Join(failed, text(w.stdout)); failed != nil {
		return failed
	}
	return verdict
}

// A file is the name from a flag, and what is written to it. Without a name nothing is
// written.
type file struct {
	flag, name string
	print      printer
}

// try makes sure that all files can be written. Long commands call it first, so that a wrong
// name fails early. Until write, files keep their content, and new ones do not exist.
func (o *outputFile) try(others ...file) error {
	for _, f := range append(others, file{flag: "json-file", name: o.JSONFile}) {
		if f.name == "" {
			continue
		}
		opened, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		created := err == nil
		if errors.Is(err, os.ErrExist) {
			opened, err = os.OpenFile(f.name, os.O_WRONLY, 0)
		}
		if err != nil {
			return usage{fmt.Errorf("--%s cannot be written: %w", f.flag, err)}
		}
		_ = opened.Close() // nothing was written
		if created {
			_ = os.Remove(f.name) // empty, and made here; if it stays, write fills it
		}
	}
	return nil
}

// write replaces the file with the printed text.
func (f *file) write(stderr io.Writer) error {
	if f.name == "" {
		return nil
	}
	created, err := os.Create(f.name)
	if err != nil {
		return usage{fmt.Errorf("--%s cannot be written: %w", f.flag, err)}
	}
	if err := errors.Join(f.print(created), created.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", f.name, err)
	}
	_, err = fmt.Fprintf(stderr, "written: %s\n", f.name)
	return err
}
