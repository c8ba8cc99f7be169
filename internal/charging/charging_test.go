package charging

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestState(t *testing.T) {
	var s State
	if !s.End() || s.Begin() {
		t.Error("a request that has ended can be charged")
	}
	s = State{}
	for range 2 {
		if !s.Begin() {
			t.Error("a request cannot be charged")
		}
	}
	if s.End() || s.Begin() {
		t.Error("a request that was charged is as if it was not, or is charged after its end")
	}
}

// Whatever the order of charges and end, a slot that may serve another request is never
// charged.
func TestStateRaces(t *testing.T) {
	for range 1000 {
		var s State
		var all sync.WaitGroup
		var begun atomic.Int32
		for range 2 {
			all.Go(func() {
				if s.Begin() {
					begun.Add(1)
				}
			})
		}
		unused := s.End()
		all.Wait()
		if unused && begun.Load() > 0 {
			t.Fatal("the request was charged, and its slot is free")
		}
	}
}
