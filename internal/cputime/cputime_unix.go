//go:build unix

package cputime

import (
	"fmt"
	"syscall"
	"time"
)

// Process returns the processor time, user and system, that this process has used.
func Process() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("cpu: getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
