package ingress

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// dispatcher lets waiters in when the executor has nothing better to do. It is a
// goroutine that lives while there is somebody to let in.
type dispatcher struct {
	idle interface { // *idle, but in tests
		wait()
		close() error
	}
	armed   atomic.Bool // one is under way
	running sync.WaitGroup
}

// wake makes sure that waiters are looked for when a processor is idle.
func (s *Server) wake() {
	if d := &s.dispatcher; !d.armed.Swap(true) {
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
		runtime.Gosched() // behind all that the same poll found
		d.armed.Store(false)
		if busy := s.letIn(); !busy || d.armed.Swap(true) {
			return
		}
	}
}

// letIn lets in all that may run now. It reports whether more could if there were
// a processor for them.
func (s *Server) letIn() (busy bool) {
	for {
		now := time.Now()
		s.load.Refresh(now) // idle now; busy, once a waiter was let in
		w, busy := s.shed.Next(now, s.state(now))
		if w == nil {
			return busy
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
