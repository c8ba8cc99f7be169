package mongoproxy

import (
	"errors"
	"io"
	"os"
)

// A Reason says why a connection was closed.
type Reason uint8

// The reasons. The first three are not errors.
const (
	Left            Reason = iota // the client hung up between messages
	Drained                       // the proxy or the listener ends, or the server was taken away
	Idle                          // nothing was asked for too long
	Malformed                     // the client broke the protocol
	Cut                           // the client hung up, or failed, in the middle
	Stalled                       // the client stopped in the middle for too long
	NotTLS                        // the client did not get through the TLS handshake, or must not use TLS
	Unreachable                   // no server could be connected to
	HungUp                        // the server hung up, or stopped in the middle for too long
	Broken                        // the server broke the protocol
	Unauthenticated               // the client did too much before it authenticated, or took too long
	reasons
)

// Reasons is the number of values of a [Reason].
const Reasons = int(reasons)

var reasonNames = [Reasons]string{
	"left", "drained", "idle", "malformed", "cut", "stalled", "tls", "unreachable", "hung up", "broken", "unauthenticated",
}

// String returns a word or two for r.
func (r Reason) String() string { return reasonNames[r] }

// An end is the error with which a connection is closed.
type end struct {
	reason Reason
	err    error
}

func (e *end) Error() string {
	if e.err == nil {
		return e.reason.String()
	}
	return e.reason.String() + ": " + e.err.Error()
}

func (e *end) Unwrap() error { return e.err }

func endAs(r Reason, text string) error { return &end{r, errors.New(text)} }

// because gives err a reason, unless it has one. It returns nil for nil, and so do all that follow.
func because(r Reason, err error) error {
	if _, ok := errors.AsType[*end](err); ok || err == nil {
		return err
	}
	return &end{r, err}
}

func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*end](err); ok {
		return e.reason
	}
	return Cut
}

// clientError gives a reason to an error of a read from or a write to a client.
func clientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return because(Stalled, err)
	}
	return because(Cut, err)
}

// serverError gives a reason to an error of a read from or a write to a server.
func serverError(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return because(HungUp, err)
}
