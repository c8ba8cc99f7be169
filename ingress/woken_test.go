package ingress

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// A request that waits runs as soon as it may, also if no other request comes or ends: when what
// is in flight is parked.
func TestWaitersAreWokenByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{MaxInFlight: 1})
		first, _ := enter(s, spillway.Call{}) // hangs
		began := time.Now()
		p, r := enter(s, spillway.Call{Deadline: began.Add(2 * time.Minute)})
		if waited := time.Since(began); r.Rejected() || waited > 25*time.Second {
			t.Errorf("waited for %v: %v", waited, r.Err)
		}
		p.Done(spillway.OutcomeServed)
		first.Done(spillway.OutcomeServed)
	})
}
