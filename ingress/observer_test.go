package ingress

import (
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/load"
)

// An Observer that panics costs no place in flight, whichever event it panics at.
func TestObserverThatPanics(t *testing.T) {
	for gate, utilization := range map[string]float64{"shed": 2, "inflight": 0} {
		c := Config{
			MaxInFlight: 1,
			Load:        load.Config{Signals: []load.Signal{{Name: "test", Read: func() float64 { return utilization }}}},
			Observer: spillway.ObserverFunc(func(e spillway.Event) {
				if e.Policy == gate {
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
					t.Errorf("%s: no panic", gate)
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
			t.Errorf("%s: the request before still has its place: %v", gate, r.Err)
		}
		p.Done(spillway.OutcomeServed)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
