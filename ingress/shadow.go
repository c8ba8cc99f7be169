package ingress

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A shadow waits at the gates that observe for a request that goes on. It runs in a separate
// goroutine. After the wait it stays in flight for the time that the request took.
type shadow struct {
	server    *Server
	came      time.Time
	ended     chan ending // receives one value
	leave     context.CancelFunc
	mu        sync.Mutex
	admission *Admission // nil while it waits
	gone      bool       // the client has left
	suspended int        // how often the request was suspended, less how often resumed, unless the shadow was
	charged   float64    // likewise what the request was charged
}

// ending is the result of a request.
type ending struct {
	took time.Duration
	o    spillway.Outcome
	err  error // why it was not started, if it was not
}

// cast returns the shadow that goes the way of a, which is to wait.
func (s *Server) cast(a *Admission, step Step, from *ratelimit.Caller) *shadow {
	ctx, leave := context.WithCancel(context.Background()) // that of the request ends with it
	x := &shadow{server: s, came: a.start, ended: make(chan ending, 1), leave: leave}
	caller := *from
	s.shadows.Go(func() { x.follow(ctx, a, step, &caller) })
	return x
}

// follow waits, asks the gates behind, and ends as late as the request would have.
func (x *shadow) follow(ctx context.Context, a *Admission, step Step, from *ratelimit.Caller) {
	defer x.leave()
	s := x.server
	defer func() {
		if p := recover(); p != nil { // of an Observer, about a request that goes on or has ended
			s.panicked.Put(p)
			x.mu.Lock()
			defer x.mu.Unlock()
			s.abandon(a, Step{})
			s.wakeWaiters()
		}
	}()
	for step.Verdict == shed.Wait {
		step = s.await(ctx, a, step, from)
	}
	if step.Wake {
		s.wakeWaiters()
	}
	if step.Verdict != shed.Run {
		return
	}
	begin := time.Now()
	x.begin(begin, a)
	e := <-x.ended
	_ = pause(ctx, time.Until(begin.Add(e.took))) // it ends either way
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if a.settle(now, e.o) {
		s.wakeWaiters()
	}
	a.reportEnd(now, e.o, e.err)
}

// begin takes in that the gates have admitted the shadow, and makes up for what has happened to the request meanwhile.
func (x *shadow) begin(now time.Time, a *Admission) {
	x.mu.Lock()
	x.admission = a
	if x.gone {
		a.tickets[shedGate].Leave(now)
	}
	x.mu.Unlock()
	x.change(now, 0, 0)
}

// left reports to the limit that the client has left. A shadow that waits leaves its queue, as the request would have. A nil shadow
// has nothing to report.
func (x *shadow) left(now time.Time) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone = true; x.admission == nil {
		x.leave()
		return
	}
	x.admission.tickets[shedGate].Leave(now)
}

// change is that of the Admission. While the shadow waits, it only notes what to change. A nil shadow has nothing
// to change.
func (x *shadow) change(now time.Time, suspends int, cost float64) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.suspended += suspends
	x.charged += cost
	if x.admission != nil {
		x.admission.change(now, x.suspended, x.charged)
		x.suspended, x.charged = 0, 0
	}
}

// end reports the result of the request at the time now.
func (x *shadow) end(now time.Time, o spillway.Outcome, err error) {
	x.ended <- ending{now.Sub(x.came), o, err}
	if o == spillway.OutcomeAbandoned {
		x.leave()
	}
}
