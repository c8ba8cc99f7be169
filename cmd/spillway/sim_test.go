package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/sim"
)

// spill runs the program.
func spill(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

// Progress is a share of all the time that is to pass, be it another for each run.
func TestProgressOfUnequalRuns(t *testing.T) {
	var b bytes.Buffer
	runs := []scenario.Run{{Config: sim.Config{Duration: 10 * time.Second}}, {Config: sim.Config{Duration: 30500 * time.Millisecond}}}
	p := newProgress(&b, "s", runs)
	p.told = time.Time{}
	p.tell(1, 30*time.Second)
	p.told = time.Time{}
	p.tell(0, 10*time.Second)
	if got, want := b.String(), "s:  74 %, 0 of 2 runs\ns:  99 %, 1 of 2 runs\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

const smallScenario = `name: small
duration: 5s
clients:
  - {name: web, rate: 10, call: {to: db}}
services:
  - {name: db, cpu: 1ms}
expect:
  - {measure: web.success, least: LEAST}
`

func write(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSimRunsAFile(t *testing.T) {
	file := write(t, strings.Replace(smallScenario, "LEAST", "0.9", 1))
	dir := t.TempDir()
	page, data := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.json")
	status, stdout, stderr := spill(t, "sim", file, "--sweep", "throttle.K=1.1,1.5,2", "--seeds", "3", "--report", page, "--json-file", data)
	if status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{"throttle.K=1.1", "throttle.K=2", "±", "PASS", "written: " + page, "written: " + data} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("no %q in:\n%s%s", want, stdout, stderr)
		}
	}
	first, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	spill(t, "sim", "run", file, "--sweep", "throttle.K=1.1,1.5,2", "--seeds", "3", "--json-file", data)
	second, err := os.ReadFile(data)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same seeds gave other bytes: %v", err)
	}
}

func TestSimExitStatus(t *testing.T) {
	broken := write(t, strings.Replace(smallScenario, "LEAST", "1.5", 1))
	unknown := write(t, strings.Replace(smallScenario, "rate", "rte", 1))
	for name, row := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"expectation fails": {[]string{broken}, exitBroken, "FAIL  web.success is 1, expected at least 1.5"},
		"unknown field":     {[]string{unknown}, exitUsage, "small.yaml:4: clients[0].rte is no field here"},
		"no file":           {[]string{"./none.yaml"}, exitUsage, "none.yaml"},
		"no name":           {[]string{"nothing"}, exitUsage, "neither a file nor a built-in scenario"},
		"nothing":           {nil, exitUsage, "spillway sim list"},
		"bad sweep":         {[]string{"deep-stack", "--sweep", "x"}, exitUsage, "--sweep"},
		"sweep of nothing":  {[]string{"deep-stack", "--sweep", "thottle.k=1"}, exitUsage, "names no field"},
		"sweep of nonsense": {[]string{"deep-stack", "--quick", "--sweep", "throttle.k=0.5"}, exitUsage, "k is 0.5, must be above 1"},
		"no seeds":          {[]string{"deep-stack", "--seeds", "0"}, exitUsage, "--seeds is 0"},
		"no directory":      {[]string{broken, "--json-file", "/nowhere/x.json"}, exitUsage, "/nowhere/x.json"},
		"no drill":          {[]string{"drill", broken}, exitUsage, "small.yaml"},
		"list":              {[]string{"list"}, exitOK, "deep-stack"},
		"list in JSON":      {[]string{"list", "--output=json"}, exitOK, "\"name\": \"deep-stack\""},
		"show":              {[]string{"show", "deep-stack"}, exitOK, "name: deep-stack"},
		"show nothing":      {[]string{"show", "x"}, exitUsage, "no built-in scenario"},
		"schema":            {[]string{"schema"}, exitOK, `"$schema"`},
		"drill of a file":   {[]string{"drill", "internal/lab/prediction/testdata/drill-callers.json"}, exitOK, "goodput in capacities"},
		"drill in JSON":     {[]string{"drill", "--output=json", "internal/lab/prediction/testdata/drill-callers.json"}, exitOK, "\"pass\": true"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "drill ") {
				race.SkipOneGoroutine(t)
			}
			status, stdout, stderr := spill(t, append([]string{"sim"}, row.args...)...)
			if status != row.status || !strings.Contains(stdout+stderr, row.says) {
				t.Errorf("status %d, want %d and %q:\n%s%s", status, row.status, row.says, stdout, stderr)
			}
		})
	}
}

func TestSimIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	var out, err bytes.Buffer
	if status := run(ctx, []string{"sim", "sparse-clients"}, &out, &err); status != exitInterrupted {
		t.Errorf("status %d: %s%s", status, &out, &err)
	}
}
