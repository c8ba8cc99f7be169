package cputime

import (
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of Linux, which package syscall does not have.
const rusageThread = 1

// Thread returns the processor time, user and system, that the calling thread has used, and whether that is known.
// Between two calls, the goroutine must be locked to its thread for the difference to mean something.
func Thread() (used time.Duration, known bool) {
	var u syscall.Rusage
	if syscall.Getrusage(rusageThread, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
