package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets this test program be the server of a run, as the real one can.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == command {
		main()
	}
	os.Exit(m.Run())
}

// says runs the program and returns how it ended.
func says(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestBadInput(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.json")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args  []string
		names []string // what the error must name
	}{
		{[]string{"--loud"}, []string{"--loud"}},
		{[]string{"--fronts=none,nonesuch"}, []string{"--fronts", "nonesuch", "aegis"}},
		{[]string{"--wires=carrier-pigeon"}, []string{"--wires", "carrier-pigeon", "tls-http2"}},
		{[]string{"--slow-accept=2s"}, []string{"--slow-accept", "2s", "1s"}},
		{[]string{"--backends=gpu"}, []string{"--backends", "gpu", "blocking"}},
		{[]string{"--loads=0"}, []string{"--loads", "0", "at most 100"}},
		{[]string{"--loads=NaN"}, []string{"--loads", "NaN"}},
		{[]string{"--loads=ten"}, []string{"--loads", "ten"}},
		{[]string{"--loads="}, []string{"--loads"}},
		{[]string{"--procs=0"}, []string{"--procs", "0", "64"}},
		{[]string{"--step=1ms"}, []string{"--step", "1ms", "1m"}},
		{[]string{"--warm-up=2m"}, []string{"--warm-up", "2m", "1m"}},
		{[]string{"--seed=-1"}, []string{"--seed", "-1"}},
		{[]string{"--json=/nowhere/at/all.json"}, []string{"--json", "/nowhere/at/all.json"}},
		{[]string{"table"}, []string{"file"}},
		{[]string{"table", "/nowhere/at/all.json"}, []string{"/nowhere/at/all.json"}},
		{[]string{"table", garbage}, []string{garbage}},
		{[]string{"backend", "--front=nonesuch"}, []string{"--front", "nonesuch"}},
	} {
		t.Run(strings.Join(row.args, " "), func(t *testing.T) {
			status, stdout, stderr := says(t, row.args...)
			if status != exitUsage || stdout != "" {
				t.Errorf("exit status %d, want %d; output %q", status, exitUsage, stdout)
			}
			for _, name := range row.names {
				if !strings.Contains(stderr, name) {
					t.Errorf("the error does not name %s: %s", name, stderr)
				}
			}
		})
	}
}

// What two runs wrote is one table, however they divided the rows.
func TestTablesOfSeveralRuns(t *testing.T) {
	one, other := filepath.Join(t.TempDir(), "1.json"), filepath.Join(t.TempDir(), "2.json")
	rows := sample().Rows
	for file, r := range map[string]Result{one: {Rows: rows[2:]}, other: {Rows: rows[:2]}} {
		if err := r.write(file); err != nil {
			t.Fatal(err)
		}
	}
	status, stdout, stderr := says(t, "table", other, one)
	if status != exitOK || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	var want strings.Builder
	if err := sample().writeTables(&want); err != nil {
		t.Fatal(err)
	}
	if stdout != want.String() {
		t.Errorf("got\n%s\nwant\n%s", stdout, want.String())
	}
}
