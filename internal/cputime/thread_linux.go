package cputime

import (
	"syscall"
	"time"
	"unsafe"
)

// clockThread is CLOCK_THREAD_CPUTIME_ID of Linux, which package syscall does not have. Getrusage for a thread is brought up to date
// at each tick of the scheduler only.
const clockThread = 3

// Thread returns the processor time, user and system, that the calling thread has used, and whether that is known.
// Between two calls, the goroutine must be locked to its thread for the difference to mean something.
func Thread() (used time.Duration, known bool) {
	var t syscall.Timespec
	//nolint:gosec // the kernel writes to t, and keeps nothing
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThread, uintptr(unsafe.Pointer(&t)), 0); failed != 0 {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
