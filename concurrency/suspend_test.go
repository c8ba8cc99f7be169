package concurrency

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// A client that leaves sooner than answers take is no evidence that nothing is answered, also while
// its request is suspended.
func TestClientsThatLeaveSoon(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		l, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1000, 0)
		for range 200 {
			a := l.Enter(now, spillway.Call{Key: "a"})
			now = now.Add(100 * time.Millisecond)
			a.Settle(now, spillway.OutcomeServed)
		}
		for range 40 {
			a := l.Enter(now, spillway.Call{Key: "a"})
			watched := a
			if suspended {
				a.Suspend(now.Add(time.Millisecond))
			}
			now = now.Add(10 * time.Millisecond)
			watched.Leave(now)
			a.Settle(now, spillway.OutcomeAbandoned)
		}
		if l.Stats(now).Shared.Unknown {
			t.Errorf("suspended: %v: nothing is known after clients left", suspended)
		}
	}
}
