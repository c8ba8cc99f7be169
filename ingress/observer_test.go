package ingress

import (
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/load"
)

// An Observer or a Signal that panics costs no place in flight, whichever event it panics at.
func TestCallbacksThatPanic(t *testing.T) {
	for _, row := range []struct {
		name, gate  string
		utilization float64
		mode        spillway.Mode
	}{
		{"rejection", "shed", 2, spillway.ModeEnforce},
		{"rejection that is observed", "shed", 2, spillway.ModeObserve},
		{"end", "inflight", 0, spillway.ModeEnforce},
		{"signal", "", -1, spillway.ModeEnforce},
	} {
		c := Config{
			MaxInFlight: 1, ShedMode: row.mode,
			Load: load.Config{Signals: []load.Signal{{Name: "test", Read: func() float64 {
				if row.utilization < 0 {
					panic("signal")
				}
				return row.utilization
			}}}},
			Observer: spillway.ObserverFunc(func(e spillway.Event) {
				if e.Policy == row.gate {
					panic("observer")
				}
			}),
		}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", row.name)
				}
			}()
			p, _ := enter(s, spillway.Call{})
			p.Done(spillway.OutcomeServed)
		}()
		c.ShedMode, c.Observer = spillway.ModeOff, nil
		if err := s.Update(c); err != nil {
			t.Fatal(err)
		}
		p, r := enter(s, spillway.Call{})
		if r.Rejected() {
			t.Errorf("%s: the request before still has its place: %v", row.name, r.Err)
		}
		p.Done(spillway.OutcomeServed)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
