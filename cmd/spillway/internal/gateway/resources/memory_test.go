package resources

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestLimit(t *testing.T) {
	var b Budget
	if !b.Take(DefaultMemory) || b.Take(1) {
		t.Error("the zero Budget does not have the default limit")
	}
	b.SetLimit(-1)
	if !b.Take(1) {
		t.Error("a negative limit is one")
	}
	b.SetLimit(10)
	b.Give(DefaultMemory + 1)
	for _, row := range []struct {
		take int
		want bool
		used int64
	}{{6, true, 6}, {5, false, 6}, {4, true, 10}, {0, true, 10}, {1, false, 10}} {
		if got := b.Take(row.take); got != row.want || b.Used() != row.used {
			t.Errorf("Take(%d) is %v with %d used, want %v with %d", row.take, got, b.Used(), row.want, row.used)
		}
	}
}

func TestConcurrentCallersNeverExceedTheLimit(t *testing.T) {
	var b Budget
	b.SetLimit(100)
	var held atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10_000 {
				if !b.Take(30) {
					continue
				}
				if n := held.Add(30); n > 100 {
					t.Errorf("%d bytes are held", n)
				}
				held.Add(-30)
				b.Give(30)
			}
		})
	}
	all.Wait()
	if used := b.Used(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	var b Budget
	if n := testing.AllocsPerRun(100, func() { b.Take(1); b.Give(1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
