package rejection

import (
	"math"
	"sync"
	"testing"
)

type rejected struct{ level float64 }

func newTable() *Table[rejected] {
	return NewTable(func(level float64) *rejected { return &rejected{level} })
}

// TestLevels: a Level is exact below 100, and has two significant digits above. Equal Levels
// share one rejection.
func TestLevels(t *testing.T) {
	table := newTable()
	for _, row := range []struct{ level, want float64 }{
		{math.NaN(), 0}, {math.Inf(-1), 0}, {-3, 0}, {0, 0}, {0.4, 0}, {0.5, 1}, {1, 1}, {99.4, 99}, {99.5, 100},
		{100, 100}, {109, 100}, {110, 110}, {999, 990}, {1000, 1000}, {1099, 1000}, {12_345, 12_000}, {98_999, 98_000},
		{99_000, 99_000}, {1e9, 99_000}, {math.Inf(1), 99_000},
	} {
		e := table.At(row.level)
		if e.level != row.want {
			t.Errorf("At(%v) is %v; want %v", row.level, e.level, row.want)
		}
		if table.At(row.want) != e {
			t.Errorf("At(%v) and At(%v) are two rejections", row.level, row.want)
		}
	}
}

// TestCells: no two Levels share a cell, and none is left out.
func TestCells(t *testing.T) {
	seen := make(map[int]float64)
	for level := range 100_001 {
		cell, rounded := cellOf(float64(level))
		if cell < 0 || cell >= cells {
			t.Fatalf("level %d is in cell %d of %d", level, cell, cells)
		}
		if before, ok := seen[cell]; ok && before != rounded {
			t.Fatalf("cell %d has the levels %v and %v", cell, before, rounded)
		}
		seen[cell] = rounded
	}
	if len(seen) != cells {
		t.Errorf("%d of %d cells are used", len(seen), cells)
	}
}

// TestConcurrent: callers at once get the same rejection, and then none is made.
func TestConcurrent(t *testing.T) {
	table := newTable()
	var all [8]*rejected
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = table.At(50) })
	}
	wg.Wait()
	for _, e := range all {
		if e != all[0] {
			t.Fatal("two rejections of one Level")
		}
	}
	if n := testing.AllocsPerRun(100, func() { table.At(50) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
