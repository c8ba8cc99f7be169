package spillsql

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// An opening bounds how many connections are being opened at once.
//
// A server that refuses connections is down, starts, or has too many clients. Callers that
// all try again keep it busy with rejections, and a rate at which they may try delays the
// moment when the first one sees that the server is back. So connections are opened one at a
// time, without a pause: the server has one client under any load, and its return is seen
// one answer later. Each connection that is
// opened doubles how many may be opened at once, as in the slow start of TCP (RFC 5681).
//
// A connection without an answer is no rejection: it changes nothing here.
//
// It is not safe for concurrent use.
type opening struct {
	now    int
	narrow int // how many may be; 0: no limit
}

// An opened is how the use of a right to open a connection has ended.
type opened int

const (
	notOpened   opened = iota // for a reason that says nothing of the server
	isOpen                    // the connection is open
	wasRejected               // the server does not accept it
)

// maxOpenings at once are no limit.
const maxOpenings = 1 << 10

// begin takes the right to open a connection, or returns false.
func (o *opening) begin() bool {
	if o.narrow > 0 && o.now >= o.narrow {
		return false
	}
	o.now++
	return true
}

// end takes in how that has ended.
func (o *opening) end(r opened) {
	o.now--
	switch r {
	case wasRejected:
		o.narrow = 1
	case isOpen:
		if o.narrow *= 2; o.narrow >= maxOpenings {
			o.narrow = 0
		}
	case notOpened:
	}
}

// openedWith returns what the result of opening a connection says.
func openedWith(ctx context.Context, err error) opened {
	switch {
	case err == nil:
		return isOpen
	case ctx.Err() == nil && breaks(err) && !timedOut(err) && !fault.Of(err).Unsent:
		return wasRejected
	default:
		return notOpened
	}
}

// unconnected returns the meaning of err for a connection that was not opened, given what
// it means for a statement. No statement was sent. A server that is not there, or that
// ends the connection, is not overloaded for that reason. Nor is one that did not answer by
// the deadline of the caller, who may have come with the rest of a wait: MaxConns bounds
// such callers. The throttle takes in answers such as "too many connections", and timeouts
// of the driver and of the network.
func unconnected(ctx context.Context, err error, f fault.Failure) fault.Failure {
	deadline, ok := ctx.Deadline()
	switch {
	case f.Canceled || f.Unsent || answer(err).answered:
		return f
	case errors.Is(err, context.DeadlineExceeded), ok && timedOut(err) && time.Until(deadline) <= 0:
		return fault.Failure{Canceled: true}
	case !network(err):
		return f
	case timedOut(err):
		f.Unprocessed = true
		return f
	default:
		return fault.Failure{Safety: fault.RetrySafe, Party: fault.Server, Unanswered: true}
	}
}

// timedOut reports whether err is that of a wait without an answer. A socket whose queue of
// connections is full (EAGAIN) counts as one, as in package syscall.
func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
