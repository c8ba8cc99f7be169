package capped

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestGet has many goroutines count by more keys than a map has. Nothing is lost, and what is known
// costs no memory.
func TestGet(t *testing.T) {
	const most, other = 5, -1
	var m Map[int, atomic.Int64]
	if n := len(m.All()); n != 0 {
		t.Errorf("%d keys at first", n)
	}
	for key := range most {
		m.Get(key, most, other).Add(1)
	}
	first := m.All()[0]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for key := range 100 {
				m.Get(key, most, other).Add(1)
			}
		})
	}
	all.Wait()
	for key, n := range m.All() {
		if want := int64(5); key != other && n.Load() != want || key == other && n.Load() != 4*(100-most) {
			t.Errorf("%d of the key %d", n.Load(), key)
		}
	}
	if len(m.All()) != most+1 || m.Get(0, most, other) != first || m.Get(99, most, other) != m.All()[other] {
		t.Errorf("%d keys, or another value than before", len(m.All()))
	}
	if n := testing.AllocsPerRun(100, func() { m.Get(0, most, other); m.Get(1000, most, other) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
