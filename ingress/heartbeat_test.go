package ingress

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// Heartbeats come while a request is at work, and end when none is. They do not come if no gate has
// a queue.
func TestHeartbeats(t *testing.T) {
	const off = spillway.ModeOff
	for want, configs := range map[bool][]Config{
		true:  {{}, {ShedMode: spillway.ModeObserve}, {ShedMode: off, MaxInFlight: 5}},
		false: {{ShedMode: off}, {ShedMode: off, MaxInFlight: 5, InFlightMode: off}},
	} {
		for _, c := range configs {
			synctest.Test(t, func(t *testing.T) {
				s := must(t, c)
				p, _ := enter(s, spillway.Call{})
				if got := s.heart.armed.Load(); got != want {
					t.Errorf("%+v: heartbeats %v", c, got)
				}
				time.Sleep(10 * heartbeatEvery)
				if working, _ := s.core.Shedder().Limit.Working(); s.heart.armed.Load() != (working > 0) {
					t.Errorf("%+v: %d at work, heartbeats %v", c, working, working == 0)
				}
				p.Done(spillway.OutcomeServed)
				time.Sleep(3 * heartbeatEvery)
				if s.heart.armed.Load() {
					t.Errorf("%+v: heartbeats without a request", c)
				}
			})
		}
	}
}

// A request that comes while the heartbeats end, when it has been looked whether one came, has
// heartbeats.
func TestRequestComesWhileHeartbeatsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{})
		first, _ := enter(s, spillway.Call{})
		first.Done(spillway.OutcomeServed)
		s.heart.again.Store(false) // as tick does before it decides to end them
		second, _ := enter(s, spillway.Call{})
		s.rest()
		if !s.heart.armed.Load() {
			t.Error("no heartbeats while a request is at work")
		}
		second.Done(spillway.OutcomeServed)
		time.Sleep(3 * heartbeatEvery)
		if s.heart.armed.Load() {
			t.Error("heartbeats without a request")
		}
	})
}
