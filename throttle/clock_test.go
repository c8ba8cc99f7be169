package throttle

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Two calls that see one step back of the clock at once take it in once: the clock goes on from where it was, and not
// from one step later.
func TestOneStepBackIsTakenInOnce(t *testing.T) {
	now := time.Unix(1e9, 0)
	for range 20000 {
		var c clock
		c.read(now)
		before := c.read(now.Add(time.Hour))
		var ready atomic.Int32
		var end sync.WaitGroup
		for range 2 {
			end.Go(func() {
				ready.Add(1)
				for n := 1; ready.Load() < 2; n++ { // both begin at once
					if n%1000 == 0 {
						runtime.Gosched() // with one processor
					}
				}
				c.read(now.Add(time.Minute))
			})
		}
		end.Wait()
		if at := c.read(now.Add(time.Minute)); at != before {
			t.Fatalf("after a step back the clock is at %v, want %v", at, before)
		}
	}
}
