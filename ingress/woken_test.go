package ingress

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// A request that waits runs as soon as it may, also if no other request comes or ends: when what is in flight is parked, and
// when an Update allows for more.
func TestWaitersAreWokenByTimeAndUpdate(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Server) error
		within time.Duration
	}{
		"parked": {func(*Server) error { return nil }, 25 * time.Second},
		"update": {func(s *Server) error { return s.Update(Config{MaxInFlight: 2}) }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := must(t, Config{MaxInFlight: 1})
				s.core.state = func(time.Time) shed.State { return shed.State{Processors: 1} }
				first, _ := enter(s, spillway.Call{}) // hangs
				began := time.Now()
				ran := make(chan time.Duration, 1)
				go func() {
					p, r := enter(s, spillway.Call{Deadline: began.Add(2 * time.Minute)})
					ran <- time.Since(began)
					if r.Rejected() {
						t.Errorf("rejected after %v: %v", time.Since(began), r.Err)
					}
					p.Done(spillway.OutcomeServed)
				}()
				synctest.Wait()
				if err := row.change(s); err != nil {
					t.Fatal(err)
				}
				if waited := <-ran; waited > row.within {
					t.Errorf("waited for %v", waited)
				}
				first.Done(spillway.OutcomeServed)
			})
		})
	}
}
