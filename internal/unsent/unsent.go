// Package unsent has the error of a call that ended while it waited in this process. To
// package fault such a call was never sent: it is not retried, costs no budget, and says
// nothing about the backend.
package unsent

import (
	"strings"
	"syscall"
)

// Error wraps the error of the context that ended the wait, or is nil if that is. policy
// names the package whose queue the call waited in, and what says for what.
func Error(policy, what string, err error) error {
	if err == nil {
		return nil
	}
	return &waitError{policy, what, err}
}

type waitError struct {
	policy, what string
	err          error
}

func (e *waitError) Error() string {
	return e.policy + ": not sent: waited for " + e.what + ": " + e.err.Error()
}

// Unwrap lets errors.Is find context.Canceled and context.DeadlineExceeded.
func (e *waitError) Unwrap() error { return e.err }

// Unsent is what package fault asks for.
func (e *waitError) Unsent() bool { return true }

// Said reports whether the text of an error that has lost its type says that this process had no connection to the
// backend, and why that was not the backend. Package fault goes by the types of the same errors.
func Said(text string) bool {
	for _, words := range said {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

var said = [...]string{
	": " + syscall.EMFILE.Error(), ": " + syscall.ENFILE.Error(), "socket: " + syscall.ENOBUFS.Error(),
	": " + syscall.EADDRNOTAVAIL.Error(), "bind: " + syscall.EADDRINUSE.Error(),
	"connect: " + syscall.ENETUNREACH.Error(), "connect: " + syscall.ENETDOWN.Error(),
	"connect: " + syscall.EPERM.Error(), "connect: " + syscall.EACCES.Error(),
	"name resolver error: ", "dns: ", "dial tcp: lookup ", ": no such host",
}
