package tokens_test

import (
	"math"
	"sync"
	"testing"

	"github.com/seed90641741/spillway/internal/tokens"
)

func TestLevel(t *testing.T) {
	var l tokens.Level
	if left, ok := l.Take(1); ok || left != 0 {
		t.Errorf("the zero Level pays: %d, %v", left, ok)
	}
	l.Add(5, 3)
	if l.Load() != 3 {
		t.Errorf("Add goes to %d past its limit of 3", l.Load())
	}
	l.Add(1, 2)
	if left, ok := l.Take(2); !ok || left != 1 {
		t.Errorf("Take(2) of 3 = %d, %v", left, ok)
	}
	if left := l.Drop(7); left != 0 {
		t.Errorf("Drop(7) of 1 = %d", left)
	}
	l.Set(5)
	if left := l.Drop(3); left != 2 || l.Load() != 2 {
		t.Errorf("Drop(3) of 5 = %d, and the level is %d", left, l.Load())
	}
	if l.Drop(2); l.Load() != 0 {
		t.Errorf("Drop(2) of 2 leaves %d", l.Load())
	}
}

// TestCredit: what is added first repays the credit, to the last unit.
func TestCredit(t *testing.T) {
	var l tokens.Level
	l.Credit(10)
	for i, row := range []struct{ add, want int64 }{{4, 10}, {5, 10}, {3, 12}, {1, 13}, {100, 20}} {
		if l.Add(row.add, 20); l.Load() != row.want {
			t.Errorf("row %d: Add(%d) makes %d, want %d", i, row.add, l.Load(), row.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for f, want := range map[float64]int64{
		0: 0, -1: 0, math.NaN(): 0, math.Inf(-1): 0,
		0.1: tokens.Unit / 10, 0.4e-9: 0, 0.6e-9: 1, 1: tokens.Unit, 2 * tokens.Max: tokens.Max * tokens.Unit, math.Inf(1): tokens.Max * tokens.Unit,
	} {
		if got := tokens.Units(f); got != want {
			t.Errorf("Units(%v) = %d, want %d", f, got, want)
		}
	}
	if got := tokens.Float(tokens.Units(0.3)); got != 0.3 {
		t.Errorf("0.3 tokens come back as %v", got)
	}
}

func TestConcurrentUseLosesNothing(t *testing.T) {
	var l tokens.Level
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				l.Add(1, math.MaxInt64)
				if _, ok := l.Take(1); !ok {
					t.Error("a token that was added is gone")
				}
			}
		})
	}
	wg.Wait()
	if l.Load() != 0 {
		t.Errorf("%d left", l.Load())
	}
}

// TestOwe: what is taken beyond the level is repaid before the level rises, up to a bound.
func TestOwe(t *testing.T) {
	var l tokens.Level
	l.Set(3)
	l.Owe(2, 10)
	l.Owe(2, 10) // 1 is owed
	l.Owe(100, 10)
	if got := l.Load(); got != 0 {
		t.Errorf("the level is %d, want 0", got)
	}
	l.Add(10, 20)
	if got := l.Load(); got != 0 {
		t.Errorf("after 10 of 10 that are owed: %d, want 0", got)
	}
	l.Add(4, 20)
	if got := l.Load(); got != 4 {
		t.Errorf("after all is paid: %d, want 4", got)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				l.Owe(1, math.MaxInt64)
				l.Add(1, 20)
			}
		})
	}
	all.Wait()
	l.Add(20, 20)
	if got := l.Load(); got != 20 {
		t.Errorf("after as much was added as taken: %d, want 20", got)
	}
}
