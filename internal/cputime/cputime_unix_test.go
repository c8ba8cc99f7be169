//go:build unix

package cputime

import (
	"syscall"
	"testing"
	"time"
)

// The processor time of the process is user time plus system time.
func TestProcessTime(t *testing.T) {
	sum := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())
	}
	for range 300_000 { // so that the kernel has worked for it
		_ = syscall.Getppid()
	}
	before := sum()
	got, err := Process()
	if after := sum(); err != nil || got < before || got > after {
		t.Errorf("%v, %v; want %v to %v", got, err, before, after)
	}
}
