package late

import (
	"sync"
	"sync/atomic"
	"testing"
)

// goesOn returns what a caller recovers.
func goesOn(p *Panic) (value any) {
	defer func() { value = recover() }()
	p.GoOn()
	return nil
}

// A panic goes on in one caller, as the value that it was. Of several the first one counts.
func TestPanicGoesOnOnce(t *testing.T) {
	var p Panic
	fails := func(with any) {
		defer p.Keep()
		panic(with)
	}
	if got := goesOn(&p); got != nil {
		t.Errorf("%v before there was a panic", got)
	}
	fails("first")
	fails("second")
	var callers sync.WaitGroup
	var told atomic.Int32
	for range 10 {
		callers.Go(func() {
			if got := goesOn(&p); got == "first" {
				told.Add(1)
			} else if got != nil {
				t.Errorf("recovered %v", got)
			}
		})
	}
	callers.Wait()
	if n := told.Load(); n != 1 {
		t.Errorf("%d callers were told", n)
	}
}

// Code that does not panic leaves nothing, and a caller pays no memory.
func TestNothingIsHeld(t *testing.T) {
	var p Panic
	guarded := func() {
		p.GoOn()
		defer p.Keep()
	}
	if n := testing.AllocsPerRun(100, guarded); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
