package spillxds

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestObserverIsToldOneAtATime has both streams tell something at once.
func TestObserverIsToldOneAtATime(t *testing.T) {
	var inside, together atomic.Int32
	c, _ := offline(t, Config{Observer: func(Event) {
		if inside.Add(1) > 1 {
			together.Add(1)
		}
		runtime.Gosched()
		inside.Add(-1)
	}})
	var streams sync.WaitGroup
	for _, kind := range []Kind{Disconnected, ReportingStopped} {
		streams.Go(func() {
			for range 10_000 {
				c.tell(Event{Kind: kind})
			}
		})
	}
	streams.Wait()
	if n := together.Load(); n > 0 {
		t.Errorf("told of two events at once, %d times", n)
	}
}
