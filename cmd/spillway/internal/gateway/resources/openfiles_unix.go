//go:build unix

package resources

import (
	"math"
	"syscall"
)

// OpenFiles returns the limit on open files of the process; 0 if it is unknown.
func OpenFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(uint64(l.Cur), math.MaxInt32)) //nolint:unconvert // it is signed on some systems
}
