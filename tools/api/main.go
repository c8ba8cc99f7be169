// Command api prints what the modules of the workspace export, a line for each name, in the manner of Go's own api/*.txt:
//
//	pkg spillway/shed, type Config struct, MaxWait time.Duration
//
// It reads the files of the directory that it is started in, below which the modules are. Names of internal packages,
// of programs and of tests are not part of it.
//
// With -check FILE it prints nothing, and fails if the file says something else, or if a line is new since the last
// release and section Unreleased of CHANGELOG.md does not have its name: what is once released costs users when it changes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	check := flag.String("check", "", "compare with `file`, and with the CHANGELOG")
	flag.Parse()
	if err := run(os.Stdout, *check); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, file string) error {
	lines, err := surface(".")
	if err != nil {
		return err
	}
	if file == "" {
		_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
		return err
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	written := strings.Split(strings.TrimSpace(string(recorded)), "\n")
	var wrong []error
	for _, line := range missing(lines, written) {
		wrong = append(wrong, fmt.Errorf("%s lacks, run make api: %s", file, line))
	}
	for _, line := range missing(written, lines) {
		wrong = append(wrong, fmt.Errorf("%s has what is gone, run make api: %s", file, line))
	}
	unsaid, err := unsaid(lines, file)
	for _, line := range unsaid {
		wrong = append(wrong, fmt.Errorf("CHANGELOG.md, Unreleased, does not name what is new: %s", line))
	}
	return errors.Join(append(wrong, err)...)
}
