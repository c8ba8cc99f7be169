package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// commitSeed is a seed to which no limit can be tuned: it follows from the commit of the working directory.
func commitSeed() (uint64, error) {
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return 0, fmt.Errorf("-commit needs git and a repository: %w", err)
	}
	h := fnv.New32a()
	h.Write(bytes.TrimSpace(commit))
	return uint64(h.Sum32()), nil
}

// linesOfCode counts the lines of a package of this module without comments, blanks and tests.
func linesOfCode(name string) (n int, err error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", module+"/"+name).Output()
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	return n, err
}
