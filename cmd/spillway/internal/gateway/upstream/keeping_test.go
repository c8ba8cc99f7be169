package upstream

import (
	"testing"
	"time"
)

// TestKeeping: a connection is certainly open for half the time after which the endpoint has closed one, and a second at most. What
// an endpoint has shown is forgotten: one that was restarted once is none that closes all connections at once.
func TestKeeping(t *testing.T) {
	var k keeping
	at := func(d time.Duration) int64 { return int64(time.Hour + d) }
	for _, row := range []struct {
		at     time.Duration
		closed time.Duration // negative: none was
		most   time.Duration // that a connection may have been idle
	}{
		{0, -1, time.Second},
		{time.Second, 5 * time.Second, time.Second},
		{2 * time.Second, 200 * time.Millisecond, 100 * time.Millisecond},
		{3 * time.Second, 5 * time.Second, 100 * time.Millisecond}, // which says nothing new
		{4 * time.Second, 0, 0},
		{4*time.Second + remembered, -1, time.Second},
		{5*time.Second + remembered, 400 * time.Millisecond, 200 * time.Millisecond},
	} {
		if row.closed >= 0 {
			k.closed(at(row.at), row.closed)
		}
		if k.open(at(row.at), row.most) || row.most > 0 && !k.open(at(row.at), row.most-1) {
			t.Errorf("at %v: the time is not %v", row.at, row.most)
		}
	}
}
