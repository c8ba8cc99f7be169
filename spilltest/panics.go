package spilltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

var errObserver = errors.New("spilltest: the observer has panicked")

// testObserverPanic has the Observer panic at each event of each kind of call. Each time nothing must be left in flight, and the
// caller must learn of it. It uses a new Stack each time, as the events after a panic are missing.
func testObserverPanic(b *bench) {
	for name, work := range map[string]func(context.Context) error{"served": works, "failed": fails, "panicked": panics, "rejected": nil} {
		n := 1
		for b.explodes(name, n, work) {
			n++
		}
	}
}

// explodes makes a call whose n-th event panics, without work one over the limit. It reports whether there was such an event.
func (b *bench) explodes(name string, n int, work func(context.Context) error) (panicked bool) {
	b.t.Run(fmt.Sprintf("%s, event %d", name, n), func(t *testing.T) {
		o, release := newBench(t, b.open), func() {}
		if work == nil {
			release, work = o.hold(o.setup.Limit), works
		}
		o.light(n)
		err := o.call(context.Background(), work)
		panicked = o.light(0) == 0
		release()
		if panicked && err == nil {
			t.Error("the caller does not learn that the Observer has panicked")
		}
		o.await("the end of all calls", func() bool { return o.InFlight() == 0 })
		o.served()
	})
	return panicked
}

// light has the n-th event from now panic, and returns how many events are missing until the one that was to panic before.
func (b *bench) light(n int) (missing int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	missing, b.fuse = b.fuse, n
	return missing
}
