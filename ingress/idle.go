package ingress

import (
	"runtime"
	"time"
)

// idle waits for idle moments of the executor.
type idle interface {
	// wait returns when a processor has nothing else to do. After close it returns at once. It must not be called by two goroutines
	// at the same time.
	wait()
	// rest gives a processor time for takeOver.
	rest()
	close() error
}

// newIdle returns what the network poller wakes, or else what only yields: on other systems than Linux, and where the process may not have
// the file for it.
func newIdle() idle {
	if p, err := newPolled(); err == nil {
		return p
	}
	return yields{}
}

// yields comes behind what is ready to run, but not behind what becomes ready meanwhile. So waiters are let in before all that arrived is
// known: the first of them may be less critical than one that is examined a moment later. Whether a processor is free, and who is rejected, is decided as ever.
type yields struct{}

func (yields) wait() { runtime.Gosched() }

func (yields) rest() { <-time.After(takeOver) }

func (yields) close() error { return nil }
