package ingress

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// dispatcher lets waiters in when the executor has nothing better to do. It is a
// goroutine that runs while requests wait.
type dispatcher struct {
	idle    idle
	armed   atomic.Bool // one is under way
	running sync.WaitGroup
}

// wakeWaiters makes sure that waiters, if there are any, are looked for when a processor is idle.
func (s *Server) wakeWaiters() {
	if d := &s.dispatcher; s.core.Waiting() > 0 && !d.armed.Swap(true) {
		d.running.Add(1)
		go s.dispatch()
	}
}

// dispatch lets waiters in at idle moments, until none is left or the next one
// has to wait for another request to end, which wakes again.
func (s *Server) dispatch() {
	d := &s.dispatcher
	defer d.running.Done()
	for {
		d.idle.wait()
		runtime.Gosched() // behind everything that the same poll found
		d.armed.Store(false)
		if busy := s.letIn(); !busy || d.armed.Swap(true) {
			return
		}
		d.idle.rest()
	}
}

// takeOver is how long a processor needs to take over what another one has not begun. It does so
// when it finds nothing to read from the network, and each wait for an idle moment is something
// to read.
const takeOver = 5 * time.Microsecond

// letIn admits all waiters that may run now. It reports whether more could run if a
// processor were free. A Signal that panics here does so for the next request, and the waiters are looked for again.
func (s *Server) letIn() (busy bool) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked.Put(p)
			busy = true
		}
	}()
	for {
		now := time.Now()
		s.load.Refresh(now) // idle at first; busy, once a waiter was let in
		w, more := s.core.Next(now)
		if w == nil {
			return more
		}
		release(w)
	}
}

// stop waits for the dispatcher to end.
func (d *dispatcher) stop() error {
	err := d.idle.close()
	d.running.Wait()
	return err
}
