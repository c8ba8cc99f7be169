package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/internal/clock"
)

// A Clock has the time of package time, between two looks at the wall clock and after them.
func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		for _, step := range []time.Duration{0, 1, time.Millisecond, 999 * time.Millisecond, time.Second, time.Hour, 0} {
			time.Sleep(step)
			if got, want := c.Now(), time.Now(); !got.Equal(want) || got.Sub(want) != 0 {
				t.Errorf("%v, want %v", got, want)
			}
		}
	})
}

func TestNowAllocatesNothing(t *testing.T) {
	var c clock.Clock
	if n := testing.AllocsPerRun(1000, func() { c.Now() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
