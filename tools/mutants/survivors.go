package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A survivor identifies a mutant by parts that do not change when other lines change.
type survivor struct{ file, line, change string }

// survivors are the mutants that no test can kill, each with the reason.
type survivors map[survivor]string

// readSurvivors reads lines of four fields with tabs between them: the file, below the module,
// the line of source, the change, and the reason.
func readSurvivors(path string) (survivors, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := survivors{}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[3] == "" {
			return nil, fmt.Errorf("%s:%d is %q, must be file, line of source, change and reason with tabs between them", path, n+1, line)
		}
		all[survivor{fields[0], fields[1], fields[2]}] = fields[3]
	}
	return all, nil
}

// stale prints the survivors in dir that have not survived, and reports whether there are any.
func (s survivors) stale(out io.Writer, dir string, lived map[survivor]bool) (some bool) {
	for k := range s {
		if strings.HasPrefix(k.file, dir+"/") && !strings.Contains(k.file[len(dir)+1:], "/") && !lived[k] {
			fmt.Fprintf(out, "%s: %q, %s, is listed as a survivor and is none\n", k.file, k.line, k.change)
			some = true
		}
	}
	return some
}
