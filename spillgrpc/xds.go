package spillgrpc

import (
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
)

// dropError is a call that the load balancing policies of grpc's own xDS have dropped: a local
// rejection, though grpc gives it the code of an unavailable backend. It has the status that
// grpc gave it.
type dropError struct {
	error

	overload bool // by drop_overload
}

func (e *dropError) Unwrap() error { return e.error }

// Is makes errors.Is(err, spillway.ErrRejected) hold.
func (e *dropError) Is(target error) bool { return target == spillway.ErrRejected }

// Unsent implements the interface by which package fault recognizes local rejections.
func (e *dropError) Unsent() bool { return true }

// droppedBy returns err as a dropError if s is that of an attempt that was dropped by
// circuit breaking (gRFC A32) or drop_overload of EDS, or else nil. grpc marks neither but
// by its text. The attempt must not have got a stream: a server may send the same text.
func droppedBy(err error, s *status.Status) error {
	text := s.Message()
	overload := text == "RPC is dropped"
	if s.Code() != codes.Unavailable || !overload && !(strings.HasPrefix(text, "max requests ") && strings.Contains(text, " exceeded on service ")) {
		return nil
	}
	return &dropError{err, overload}
}

// Drops are the attempts that the load balancing policies of grpc's own xDS have dropped.
type Drops struct {
	// CircuitBreaking is how many were beyond max_requests of their cluster (gRFC A32).
	CircuitBreaking uint64
	// Overload is how many were dropped by drop_overload of EDS.
	Overload uint64
}

// Drops returns how many attempts were dropped on channels of grpc's own xDS since the
// start. It is safe for concurrent use.
func (c *Client) Drops() Drops {
	return Drops{CircuitBreaking: c.drops.breaker.Load(), Overload: c.drops.overload.Load()}
}

// dropCounts are Drops while they are counted.
type dropCounts struct{ breaker, overload atomic.Uint64 }

// add counts an attempt that failed for the reason failure, if that is a drop.
func (d *dropCounts) add(failure error) {
	drop, ok := failure.(*dropError) //nolint:errorlint // as judge returns it
	switch {
	case !ok:
	case drop.overload:
		d.overload.Add(1)
	default:
		d.breaker.Add(1)
	}
}
