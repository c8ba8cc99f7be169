//go:build !linux

package cputime

import "time"

// Thread reports that the processor time of a thread is not known: it is read on Linux only.
func Thread() (used time.Duration, known bool) { return 0, false }
