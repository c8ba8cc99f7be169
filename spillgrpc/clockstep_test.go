package spillgrpc

import (
	"testing"
	"time"
)

// The count of endpoints that are left out is renewed although the clock was set back.
func TestCountAfterClockStep(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		e, now := new(ejections), time.Now()
		e.out.Store(3)
		e.counted.Store(now.UnixNano())
		if n, _ := e.count(now.Add(step), nil); n != 0 {
			t.Errorf("after a step of %v %d endpoints are out, of none", step, n)
		}
	}
}
