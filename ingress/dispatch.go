package ingress

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A dispatcher lets waiters in when a processor is idle. It is a goroutine that runs while requests
// wait and one of them may run soon.
type dispatcher struct {
	idle    idle
	armed   atomic.Bool // a goroutine waits for an idle moment, after which it looks for waiters
	running sync.WaitGroup
}

// wakeWaiters makes sure that the dispatcher looks for waiters, if there are any, when a processor
// is idle.
func (s *Server) wakeWaiters() {
	if d := &s.dispatcher; s.core.Waiting() > 0 && !d.armed.Swap(true) {
		d.running.Add(1)
		go s.dispatch()
	}
}

// dispatch lets waiters in at idle moments, until none is left or the next one has to wait until
// another request ends. When that ends, wakeWaiters is called.
func (s *Server) dispatch() {
	d := &s.dispatcher
	defer d.running.Done()
	for {
		d.idle.wait()
		runtime.Gosched() // let all goroutines run first that the same poll has found
		d.armed.Store(false)
		if busy := s.letIn(); !busy || d.armed.Swap(true) {
			return
		}
		d.idle.rest()
	}
}

// letIn lets all waiters in that may run now. It reports whether more could run if a processor were
// free. If a Signal panics here, the panic goes on in the next request, and letIn reports true, so
// that the dispatcher tries again.
func (s *Server) letIn() (busy bool) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked.Put(p)
			busy = true
		}
	}()
	for {
		now := time.Now()
		s.load.Refresh(now) // each waiter that is let in makes the process busier
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
