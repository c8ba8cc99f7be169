package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The package in testdata has known gaps in its tests.
func TestExamine(t *testing.T) {
	r, err := examine("testdata/clamp", "", "", 2)
	if err != nil {
		t.Fatal(err)
	}
	found := map[fate][]string{}
	for _, m := range r.mutants {
		found[m.fate] = append(found[m.fate], fmt.Sprintf("%s %s", m.at, m.change))
	}
	// At a bound both ways give the same number, so no test can notice the first three.
	lived := []string{"clamp.go:10:7 > to >=", "clamp.go:13:7 < to <=", "clamp.go:21:9 >= to >", "clamp.go:21:6 / to *"}
	unreached := []string{"clamp.go:38:62 * to /", "clamp.go:38:58 * to /"}
	if got := found[fateLived]; !slices.Equal(got, lived) {
		t.Errorf("these lived: %q, want %q", got, lived)
	}
	if got := found[fateUnreached]; !slices.Equal(got, unreached) {
		t.Errorf("not reached: %q, want %q", got, unreached)
	}
	if got := len(found[fateKilled]) + len(found[fateTimedOut]); got != 12 {
		t.Errorf("%d were killed, want 12: %q, and by time %q", got, found[fateKilled], found[fateTimedOut])
	}
	if r.report(io.Discard, "testdata/clamp", 95) {
		t.Error("a package with gaps is good enough")
	}
}

// What is listed as a survivor does not count, and must be one.
func TestSurvivors(t *testing.T) {
	list := filepath.Join(t.TempDir(), "survivors.txt")
	if err := os.WriteFile(list, []byte("# of clamp\n\n"+
		"testdata/clamp/clamp.go\tif n > limit {\t> to >=\tthe same number\n"+
		"testdata/clamp/clamp.go\tif n < -limit {\t< to <=\tthe same number\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := examine("testdata/clamp", "", "^clamp.go:1[03]:7 ", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.known, err = readSurvivors(list); err != nil {
		t.Fatal(err)
	}
	if r.all = true; len(r.mutants) != 4 || !r.report(io.Discard, "testdata/clamp", 100) {
		t.Errorf("%d mutants, want four: two that are killed and two that are listed", len(r.mutants))
	}
	r.known[survivor{"testdata/clamp/clamp.go", "return n, n != 0", "!= to =="}] = "none"
	if r.report(io.Discard, "testdata/clamp", 100) {
		t.Error("a killed mutant is listed as a survivor")
	}
}
