//go:build !linux

package machine

import (
	"errors"
	"os/exec"
	"time"
)

// An Affinity is for Linux only.
type Affinity struct{}

// Separate fails.
func Separate() (*Affinity, error) { return new(Affinity), errors.New("only Linux is supported") }

// End does nothing.
func (*Affinity) End() {}

// Start starts cmd.
func (*Affinity) Start(cmd *exec.Cmd) error { return cmd.Start() }

// ProcessorTime returns 0: not known.
func ProcessorTime(int) time.Duration { return 0 }
