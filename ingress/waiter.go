package ingress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A waiter is a request that waits in the queue of a shedder.
type waiter struct {
	shed.Waiter
	done  chan struct{} // receives one value when the request has left the queue
	timer *time.Timer   // for the maximum wait; stopped while the request does not wait
}

func newWaiter() *shed.Waiter {
	w := &waiter{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	w.Owner = w
	return &w.Waiter
}

// release informs the goroutine of a waiter that the request has left the queue.
func release(w *shed.Waiter) { w.Owner.(*waiter).done <- struct{}{} }

// abandon gives back what an Admission holds when its request has panicked.
func abandon(a *requests.Admission) {
	now := time.Now()
	if !a.Abandon(now, false) {
		<-a.Waiter().Owner.(*waiter).done
		a.Abandon(now, true)
	}
}

// await waits for a request whose step has the Verdict Wait, and returns its next step.
func (s *Server) await(ctx context.Context, a *requests.Admission, step requests.Step, from *ratelimit.Caller) (next requests.Step) {
	if step.Wake {
		s.wakeWaiters()
	}
	if step.Waiter == nil {
		if err := pause(ctx, step.For); err != nil {
			next, _ = a.Withdraw(time.Now(), err)
		} else {
			next, _ = a.Expire(time.Now(), from)
		}
		return next
	}
	if step.Evicted != nil {
		release(step.Evicted)
	}
	came := a.Start
	next = s.queue(ctx, a, step, from)
	s.beat()
	s.load.Waited(time.Since(came))
	return next
}

// queue waits until a request leaves its queue, its maximum wait has passed, or its client
// has left.
func (s *Server) queue(ctx context.Context, a *requests.Admission, step requests.Step, from *ratelimit.Caller) requests.Step {
	w := step.Waiter.Owner.(*waiter)
	w.timer.Reset(step.For)
	select {
	case <-w.done:
		w.timer.Stop() // now, as another request may use w after Proceed
		return a.Proceed(time.Now(), from)
	case <-w.timer.C:
		if next, ok := a.Expire(time.Now(), from); ok {
			return next
		}
	case <-ctx.Done():
		w.timer.Stop()
		if next, ok := a.Withdraw(time.Now(), ctx.Err()); ok {
			return next
		}
	}
	<-w.done
	return a.Proceed(time.Now(), from)
}

// pause waits for d to pass, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
