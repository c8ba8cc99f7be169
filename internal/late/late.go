// Package late passes panics of code of the user to a caller that can recover, where the code runs in a goroutine that no caller waits for.
package late

import "sync/atomic"

// A Panic holds what code of the user has panicked with, until a caller comes in whose goroutine it can go on. The zero Panic holds
// nothing. It is safe for concurrent use.
type Panic struct {
	value atomic.Pointer[any] // of several the first counts
}

// Keep recovers, and holds what it gets. It must be deferred itself.
func (p *Panic) Keep() { p.Put(recover()) }

// Put holds a value of recover, unless that is nil.
func (p *Panic) Put(value any) {
	if value != nil {
		kept := value // so that value stays on the stack where there is no panic
		p.value.CompareAndSwap(nil, &kept)
	}
}

// GoOn panics with what is held, once. Otherwise it costs an atomic load.
func (p *Panic) GoOn() {
	if p.value.Load() == nil {
		return
	}
	if value := p.value.Swap(nil); value != nil {
		panic(*value) //nolint:forbidigo // it goes on where a caller can recover
	}
}
