package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	args := strings.Fields("-calls 1,3 -kinds cpu -loads 2 -seconds 1 -beside -tiers 3 -mixed")
	if err := run(&out, args); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out.String(), "\n")
	if len(rows) != 15 || !strings.HasPrefix(rows[0], "Calls in turn") || !strings.HasPrefix(rows[7], "Calls at once") {
		t.Errorf("%d lines:\n%s", len(rows), out.String())
	}
	if err := run(&out, []string{"-ways", "never"}); err == nil {
		t.Error("a way that is none is accepted")
	}
}

// All possible tasks of one call are served at any load.
func TestSingleCalls(t *testing.T) {
	for _, kind := range []string{cpu, pool} {
		one := trial{way: inTurn, calls: 1, kind: kind, load: 2, seconds: 5, clients: 10, tiers: 2, seed: 1}
		all := []trial{one}
		if err := simulate(all); err != nil {
			t.Fatal(err)
		}
		if all[0].result < "0.90" || all[0].result > "1.10" {
			t.Errorf("%s: %s of the possible tasks, want about all", kind, all[0].result)
		}
	}
}
