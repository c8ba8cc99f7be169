package main

import (
	"testing"

	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/sim"
)

// The goodput, the order of the classes and the shares of customers do not depend on the number of
// processors. The wrong class gets more of a small server at 2 C: the two highest classes fill it
// exactly, so that a hundred calls more or less decide whether a third class is served.
func TestScale(t *testing.T) {
	long(t)
	for _, row := range []struct {
		processors int
		load       float64
		misplaced  float64
	}{
		{1, 2, 0.16}, {4, 2, 0.08}, {16, 2, 0.04}, {64, 2, 0.02},
		{1, 10, 0.02}, {4, 10, 0.02}, {16, 10, 0.02}, {64, 10, 0.02}, {256, 10, 0.02},
	} {
		if row.processors >= 64 && !thorough.Enabled() {
			continue
		}
		got, err := runScale(row.processors, row.load, 11)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", got)
		if got.goodput < got.line-0.05 {
			t.Errorf("%d processors at %g C: goodput %.3f, line %.3f", row.processors, row.load, got.goodput, got.line)
		}
		if got.misplaced > row.misplaced {
			t.Errorf("%d processors at %g C: %.3f of the goodput is of the wrong class", row.processors, row.load, got.misplaced)
		}
		if row.processors > 64 || row.load < 10 {
			continue // customers cost as much time again
		}
		if quiet, err := runQuiet(row.processors, row.load, 11); err != nil || quiet < 0.98 {
			t.Errorf("%d processors: quiet customers get %.3f, %v", row.processors, quiet, err)
		}
	}
}

// What is misplaced is the lesser of what is lost above and served below a line.
func TestMisplaced(t *testing.T) {
	class := func(offered, good int) sim.ClassSummary {
		return sim.ClassSummary{Counts: sim.Counts{Offered: offered, Good: good}}
	}
	for _, row := range []struct {
		classes []sim.ClassSummary
		want    float64
	}{
		{[]sim.ClassSummary{class(100, 100), class(100, 50), class(100, 0)}, 0},
		{[]sim.ClassSummary{class(100, 50), class(100, 50)}, 0.5},
		{[]sim.ClassSummary{class(100, 90), class(100, 100), class(100, 10)}, 0.05},
		{nil, 0},
	} {
		if got := misplaced(row.classes); got != row.want {
			t.Errorf("%+v: %v, want %v", row.classes, got, row.want)
		}
	}
}
