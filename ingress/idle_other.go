//go:build !linux

package ingress

import "time"

// idle does nothing here: that the dispatcher yields must do, which puts it
// behind everything that is ready to run, but not behind what has just arrived.
type idle struct{}

func newIdle() (*idle, error) { return new(idle), nil }

func (*idle) wait() {}

// rest gives a processor time for takeOver.
func (*idle) rest() { <-time.After(takeOver) }

func (*idle) close() error { return nil }
