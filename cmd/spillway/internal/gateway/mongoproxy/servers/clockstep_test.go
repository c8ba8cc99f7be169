package servers

import (
	"net/netip"
	"testing"
	"time"
)

// A server that could not be reached is avoided for a while. If the clock is then set back by an
// hour, it is not avoided for that hour, and if it is set forward the time is over.
func TestTroubleAndClockSteps(t *testing.T) {
	client := netip.MustParseAddr("10.0.0.1")
	for step, avoided := range map[time.Duration]bool{0: true, -time.Hour: false, time.Hour: false} {
		e := New()
		e.Update([]string{"a", "b"})
		now := time.Now()
		e.all[0].trouble.Store(now.UnixNano())
		e.all[1].conns = 5 // so that a is the better one
		if got := e.enter(client, now.Add(step), nil); (got != e.all[0]) != avoided {
			t.Errorf("after a step of %v the server is avoided: %v", step, got != e.all[0])
		}
	}
}
