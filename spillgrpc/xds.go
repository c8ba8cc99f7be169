package spillgrpc

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
)

// dropError is a call that the load balancing policies of grpc's own xDS have dropped:
// a refusal of this process, though grpc gives it the code of a backend that is not
// there. It has the status that grpc gave it.
type dropError struct{ error }

func (e *dropError) Unwrap() error { return e.error }

// Is makes errors.Is(err, spillway.ErrRejected) hold.
func (e *dropError) Is(target error) bool { return target == spillway.ErrRejected }

// Unsent implements the interface by which package fault knows local refusals.
func (e *dropError) Unsent() bool { return true }

// dropped reports whether an attempt that never got a stream was dropped by circuit
// breaking (gRFC A32) or drop_overload of EDS. grpc marks neither but by its text, and a
// server that sends the same text has opened a stream.
func dropped(s *status.Status) bool {
	if s.Code() != codes.Unavailable {
		return false
	}
	text := s.Message()
	return text == "RPC is dropped" || strings.HasPrefix(text, "max requests ") && strings.Contains(text, " exceeded on service ")
}
