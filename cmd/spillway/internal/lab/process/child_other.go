//go:build !linux

package process

import (
	"syscall"
	"time"
)

// CPUs keeps the backend and its caller on processors of their own, where
// the system allows it.
type CPUs struct{}

func Separate() CPUs { return CPUs{} }

func (*CPUs) End() {}

func (*CPUs) start(start func() error) error { return start() }

// Taken knows nothing here.
func (*CPUs) Taken(...*Process) (time.Duration, bool) { return 0, false }

// endsWithParent ends a child when this process ends, on systems that support it.
func endsWithParent() *syscall.SysProcAttr { return nil }
