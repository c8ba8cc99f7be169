package ingress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// waiter is a request that waits in the queue of the shedder.
type waiter struct {
	shed.Waiter
	done  chan struct{} // receives one value when it has left the queue
	timer *time.Timer
}

func newWaiter() any {
	w := &waiter{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	w.Owner = w
	return w
}

// release informs a waiter that it has left the queue.
func release(w *shed.Waiter) { w.Owner.(*waiter).done <- struct{}{} }

// wait waits until w leaves the queue, or its maximum wait has passed, and returns the ticket or
// the reason for the rejection.
func (s shedder) wait(ctx context.Context, w *waiter, most time.Duration) (spillway.Ticket, error) {
	w.timer.Reset(most)
	defer w.timer.Stop()
	select {
	case <-w.done:
	case <-w.timer.C:
		if !s.Expire(&w.Waiter) {
			<-w.done
		}
	case <-ctx.Done():
		if s.Withdraw(&w.Waiter) {
			return spillway.Ticket{}, ctx.Err()
		}
		<-w.done
	}
	return w.Ticket, w.Err
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
