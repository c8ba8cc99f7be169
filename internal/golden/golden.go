// Package golden compares what a test has recorded with a file in testdata. Only tests import it.
package golden

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// Check fails t at the first line in which got differs from testdata/name. With -update it
// writes the file instead.
func Check(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wants, gots := strings.Split(string(text), "\n"), strings.Split(got, "\n")
	for i := range max(len(wants), len(gots)) {
		if g, w := line(gots, i), line(wants, i); g != w {
			t.Fatalf("%s:%d:\n got  %s\n want %s\nIf the change is meant: go test -update", path, i+1, g, w)
		}
	}
}

func line(of []string, i int) string {
	if i >= len(of) {
		return "(the end)"
	}
	return of[i]
}

// A Digest is a hash of the texts that were added to it, in order. A line of a golden file can
// have it in place of many answers.
type Digest uint64

// Addf adds a text.
func (d *Digest) Addf(format string, args ...any) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d ", *d)       // never fails
	_, _ = fmt.Fprintf(h, format, args...) // likewise
	*d = Digest(h.Sum64())
}
