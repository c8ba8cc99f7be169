//go:build unix

package load

import (
	"fmt"
	"syscall"
	"time"
)

// processTime returns the processor time, user and system, of this process.
func processTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("cpu: getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
