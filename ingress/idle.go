package ingress

import (
	"runtime"
	"time"
)

// idle waits for idle moments of the executor.
type idle interface {
	// wait returns when a processor has nothing else to do. After close it returns at once. It
	// must not be called by two goroutines at the same time.
	wait()
	// rest pauses for takeOver, so that other processors can find work.
	rest()
	// close ends a wait, and makes all later ones return at once.
	close() error
}

// takeOver is how long a processor needs to take over work that another processor has not begun. A
// processor looks for such work only when its poll of the network finds nothing. As each call of
// wait gives the poll something to find, rest makes a pause between two calls.
const takeOver = 5 * time.Microsecond

// newIdle returns a polled. On other systems than Linux, and where the process may not open the
// file for it, newIdle returns a yields.
func newIdle() idle {
	if p, err := newPolled(); err == nil {
		return p
	}
	return yields{}
}

// yields waits until all goroutines have run that are ready now. It does not wait for goroutines
// that become ready meanwhile. So a waiter may be let in before all requests that arrived are
// examined, and may be less critical than one of these. Which requests are rejected does not depend
// on it.
type yields struct{}

func (yields) wait() { runtime.Gosched() }

func (yields) rest() { <-time.After(takeOver) }

func (yields) close() error { return nil }
