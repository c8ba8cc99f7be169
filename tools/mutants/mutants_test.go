package main

import (
	"fmt"
	"io"
	"slices"
	"testing"
)

// The package in testdata has known gaps in its tests.
func TestExamine(t *testing.T) {
	r, err := examine("testdata/clamp", "", 2)
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
