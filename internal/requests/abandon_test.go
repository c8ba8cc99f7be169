package requests

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// Wherever a request is abandoned, nothing of it stays behind: no waiter, no reservation, no slot.
func TestAbandon(t *testing.T) {
	now := time.Unix(1e9, 0)
	queue := Config{MaxInFlight: 1, Modes: Modes{Shed: spillway.ModeOff}}
	tokens := Config{RateLimit: ratelimit.Config{Rate: 1, BurstSeconds: 1, QueueDepth: 1}, Modes: queue.Modes}
	for name, row := range map[string]struct {
		config  Config
		verdict shed.Verdict // of the second request
		ends    bool         // the first request ends, which lets the second one in
	}{
		"waits in a queue":       {queue, shed.Wait, false},
		"has just left a queue":  {queue, shed.Wait, true},
		"waits for a token":      {tokens, shed.Wait, false},
		"runs, after all gates":  {Config{MaxInFlight: 2}, shed.Run, false},
		"runs, without any gate": {Config{Modes: queue.Modes}, shed.Run, false},
	} {
		c := must(t, row.config, always(shed.State{Processors: 4}))
		var first, second Admission
		c.Enter(&first, now, new(spillway.Call), new(ratelimit.Caller))
		if s := c.Enter(&second, now, new(spillway.Call), new(ratelimit.Caller)); s.Verdict != row.verdict {
			t.Fatalf("%s: %+v", name, s)
		}
		if row.ends {
			first.Done(now, spillway.OutcomeServed)
			if w, _ := c.Next(now); w != second.Waiter() {
				t.Fatalf("%s: %p leaves the queue, want %p", name, w, second.Waiter())
			}
		}
		if ended := second.Abandon(now, false); ended == row.ends {
			t.Errorf("%s: abandoned before the shell knows: %v", name, ended)
		}
		if !second.Abandon(now, true) || second.Waiter() != nil {
			t.Errorf("%s: not abandoned", name)
		}
		first.Done(now, spillway.OutcomeServed)
		st := c.Stats(now)
		if n := st.RateLimit.Waiting + c.Waiting() + st.InFlight.InFlight + st.Concurrency.Shared.InFlight; n != 0 {
			t.Errorf("%s: %d are left: %+v", name, n, st)
		}
	}
}

// An exempt request has no effect, whatever the shell calls.
func TestExempt(t *testing.T) {
	c := must(t, Config{MaxInFlight: 1, Exempt: func(spillway.Call) bool { return true }}, always(shed.State{Processors: 1}))
	now, call := time.Unix(1e9, 0), spillway.Call{Criticality: spillway.Sheddable}
	for range 3 {
		var a Admission
		if s := c.Enter(&a, now, &call, new(ratelimit.Caller)); s.Verdict != shed.Run || call.Level.Valid() {
			t.Errorf("%+v with %+v", s, call)
		}
		a.Change(now, 1, 1)
		if a.End(now, spillway.OutcomeServed) || !a.Abandon(now, false) || a.Chargeable() || a.MeasuredHere() {
			t.Error("an exempt request holds something")
		}
		a.Report(now, spillway.OutcomeServed)
	}
	if st := c.Stats(now); st.InFlight.InFlight != 0 || st.InFlight.Classes[0].AdmittedTotal != 0 {
		t.Errorf("%+v", st.InFlight)
	}
}
