package ingress

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// A Slot that has ended serves another request, and what comes late for the first one, from
// other goroutines too, does nothing.
func TestSlotServesOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{Quota: perCustomer(t, 1e9)})
		var p Slot
		for range 50 {
			r := p.EnterAt(t.Context(), s, time.Now(), &spillway.Call{Customer: "a"}, &ratelimit.Caller{})
			if r.Rejected() || !p.Chargeable() {
				t.Fatalf("not admitted, or not chargeable: %+v", r)
			}
			if n := s.Stats(time.Now()).Concurrency.Shared.InFlight; n != 1 {
				t.Fatalf("%d in flight, want 1", n)
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					p.Suspend(time.Now())
					p.Charge(time.Now(), 1)
					p.Resume(time.Now())
				})
			}
			p.Done(spillway.OutcomeServed)
			p.Done(spillway.OutcomeFailed)
			all.Wait()
			p.Suspend(time.Now())
			p.Resume(time.Now())
			if n := s.Stats(time.Now()).Concurrency.Shared.InFlight; n != 0 || p.Chargeable() {
				t.Fatalf("%d in flight, chargeable %v, want nothing left", n, p.Chargeable())
			}
		}
	})
}

// EnterAt goes by the earlier one of the deadlines of the context and the call. It says why a
// request is rejected, and leaves a Slot that serves the next one.
func TestEnterAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{})
		now := time.Now()
		ctx, cancel := context.WithDeadline(t.Context(), now.Add(time.Minute))
		defer cancel()
		var p Slot
		for _, row := range []struct{ call, enter time.Duration }{{time.Second, time.Second}, {time.Hour, time.Minute}} {
			call := spillway.Call{Deadline: now.Add(row.call)}
			p.EnterAt(ctx, s, now, &call, &ratelimit.Caller{})
			if d := p.Call().Deadline.Sub(now); d != row.enter || call.Deadline.Sub(now) != row.call {
				t.Errorf("the deadline is in %v, want %v; that of the caller's own call is in %v", d, row.enter, call.Deadline.Sub(now))
			}
			p.Done(spillway.OutcomeServed)
		}
		full := must(t, Config{Quota: perCustomer(t, 1e-9)})
		for range 3 { // which is more than a burst
			p.EnterAt(ctx, full, now, &spillway.Call{Customer: "a"}, &ratelimit.Caller{})
			p.Done(spillway.OutcomeServed)
		}
		for range 2 {
			why := p.EnterAt(ctx, full, now, &spillway.Call{Customer: "a"}, &ratelimit.Caller{})
			if why.Outcome != spillway.OutcomeOverQuota {
				t.Errorf("%+v, want over quota", why)
			}
		}
	})
}

// An Update leaves the Trust that was handed out as it is.
func TestTrustOutlivesAnUpdate(t *testing.T) {
	s := must(t, Config{})
	before := s.Trust()
	if err := s.Update(Config{Trust: Trust{Boundary: Internal}}); err != nil {
		t.Fatal(err)
	}
	if before.Boundary != Edge || s.Trust().Boundary != Internal {
		t.Errorf("%v became %v", before.Boundary, s.Trust().Boundary)
	}
}
