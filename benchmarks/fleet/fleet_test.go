package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/quota"
)

func stored(t *testing.T) *Record {
	t.Helper()
	r, err := readRecord("../..")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// find returns the stored result of a scenario.
func (r *Record) find(name string, tasks int) *Result {
	for _, x := range r.Results {
		if x.Scenario == name && x.Tasks == tasks {
			return x
		}
	}
	return nil
}

// The simulator shows today what is stored. Sizes above 10 tasks, and costs, take too long for a test.
func TestRecordIsWhatTheSimulatorShows(t *testing.T) {
	r := stored(t)
	for _, s := range scenarios(sizes[0]) {
		got, err := simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(r.find(s.Name, s.Tasks))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, want) {
			t.Errorf("%s: got\n%s, stored is\n%s\nRun go run ./benchmarks/fleet -tasks 10000 -record", s.Name, text, want)
		}
	}
}

// The page and its picture are made from what is stored.
func TestPage(t *testing.T) {
	r := stored(t)
	page, err := os.ReadFile(filepath.Join("../..", pageFile))
	if err != nil {
		t.Fatal(err)
	}
	filled, err := r.fill(page)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(filepath.Join("../..", pictureFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, filled) || string(picture) != r.picture() {
		t.Errorf("%s or its picture is not what %s has; run go run ./benchmarks/fleet -page", pageFile, recordFile)
	}
	if _, err := r.fill([]byte("a page without tables")); err == nil {
		t.Error("a page without tables was filled")
	}
}

// Every size is stored, and holds what the guide promises.
func TestBands(t *testing.T) {
	r := stored(t)
	for _, n := range sizes {
		for name, band := range map[string][2]float64{
			belowLimit:                 {0.77, 0.83},
			"demand 3":                 {0.96, 1.01},
			"round trip of 50 ms":      {0.96, 1.01},
			"5 % of messages are lost": {0.95, 1.02},
		} {
			x := r.find(name, n)
			if x == nil {
				t.Errorf("%s, %d tasks: nothing is stored", name, n)
				continue
			}
			if mean := x.Spans[0].Mean; !(mean >= band[0] && mean <= band[1]) {
				t.Errorf("%s, %d tasks: %v of the limit, want %v to %v", name, n, mean, band[0], band[1])
			}
			if name == belowLimit && x.Rejected > 0 {
				t.Errorf("%d tasks reject %d calls below the limit", n, x.Rejected)
			}
		}
		if x := r.find("half of the tasks are cut off for 15 s", n); x == nil || x.Spans[0].Mean > 1.05 || x.Spans[1].Mean > 1.52 {
			t.Errorf("half cut off, %d tasks: %+v", n, x)
		}
	}
}

func TestCommand(t *testing.T) {
	var b bytes.Buffer
	if err := run(&b, []string{"-tasks", "10", "-scenario", "all demand"}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "| all demand moves: from then on |") || strings.Contains(got, "demand 3") {
		t.Errorf("got\n%s", got)
	}
	if err := run(&b, []string{"-nonesuch"}); err == nil {
		t.Error("an unknown flag was accepted")
	}
}

func TestDivide(t *testing.T) {
	s := zones("zones", second)
	s.Tasks, s.Limit = 4, 100
	w, err := newWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop()
	copy(w.offered, []float64{10, 80, 5, 60})
	w.divide(second)
	for i, want := range []float64{10, 42.5, 5, 42.5} {
		got := w.tasks[i].fleet.Lease(epoch, quota.Demand{Customer: "main"}).Rate
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("zone %d has %v, want %v", i, got, want)
		}
	}
}
