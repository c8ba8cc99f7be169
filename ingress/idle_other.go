//go:build !linux

package ingress

// idle does nothing here: that the dispatcher yields must do, which puts it
// behind everything that is ready to run, but not behind what has just arrived.
type idle struct{}

func newIdle() (*idle, error) { return new(idle), nil }

func (*idle) wait() {}

func (*idle) close() error { return nil }
