package ingress

import (
	"context"
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
	mu        spinlock // guards what follows once the request runs
	admission *Admission
	runs      bool    // it has waited
	suspended int     // how often the request was suspended, less how often resumed, unless the shadow was
	charged   float64 // likewise what the request was charged
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
	x := &shadow{server: s, came: a.start, ended: make(chan ending, 1), leave: leave, admission: a}
	caller := *from
	s.shadows.Go(func() { x.follow(ctx, step, &caller) })
	return x
}

// follow waits, asks the gates behind, and ends as late as the request would have.
func (x *shadow) follow(ctx context.Context, step Step, from *ratelimit.Caller) {
	defer x.leave()
	s := x.server
	for step.Verdict == shed.Wait {
		if step.Wake {
			s.wakeWaiters()
		}
		step = s.await(ctx, x.admission, step, from)
	}
	if step.Wake {
		s.wakeWaiters()
	}
	if step.Verdict != shed.Run {
		return
	}
	begin := time.Now()
	x.begin(begin)
	e := <-x.ended
	_ = pause(ctx, time.Until(begin.Add(e.took))) // it ends either way
	x.mu.lock()
	defer x.mu.unlock()
	if x.admission.end(time.Now(), e.o, e.err) {
		s.wakeWaiters()
	}
}

// change is [Passage.Suspend] of the shadow, [Passage.Resume] where suspends is negative, and
// [Passage.Charge]. While the shadow waits, it only notes what to change. A nil shadow has nothing
// to change.
func (x *shadow) change(now time.Time, suspends int, cost float64) {
	if x == nil {
		return
	}
	x.mu.lock()
	defer x.mu.unlock()
	x.suspended += suspends
	x.charged += cost
	if x.runs {
		x.apply(now)
	}
}

// begin ends the wait. If the request waits for its client, so does the shadow from now on.
func (x *shadow) begin(now time.Time) {
	x.mu.lock()
	defer x.mu.unlock()
	x.runs = true
	x.apply(now)
}

// apply makes the changes that were noted. The lock is held.
func (x *shadow) apply(now time.Time) {
	for range x.suspended {
		x.admission.Suspend(now)
	}
	for range -x.suspended {
		x.admission.Resume(now)
	}
	if x.charged != 0 {
		x.admission.Charge(now, x.charged)
	}
	x.suspended, x.charged = 0, 0
}

// end reports the result of the request at the time now.
func (x *shadow) end(now time.Time, o spillway.Outcome, err error) {
	x.ended <- ending{now.Sub(x.came), o, err}
	if o == spillway.OutcomeAbandoned {
		x.leave()
	}
}
