package cputime

import (
	"runtime"
	"testing"
	"time"
)

// TestThread: the time of a thread is exact also for less than a tick of the scheduler.
func TestThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, known := Thread()
	rounds := 0
	for begin := time.Now(); time.Since(begin) < 100*time.Microsecond; {
		rounds++
	}
	after, _ := Thread()
	t.Log(rounds, "rounds")
	if used := after - before; !known || used <= 0 || used > 100*time.Millisecond {
		t.Errorf("known: %v, %v used in a loop of 100 µs", known, used)
	}
}
