package serving

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
)

// The codes of gRPC, which Connect shares.
const (
	codeUnknown           = 2
	codeDeadlineExceeded  = 4
	codeResourceExhausted = 8
	codeAborted           = 10
	codeInternal          = 13
	codeUnavailable       = 14
	codeDataLoss          = 15
)

// Repeatable reports whether clients repeat calls that were answered with a code. The other codes are final.
func Repeatable[Code ~uint32](c Code) bool {
	return c == codeResourceExhausted || c == codeAborted || failed(c)
}

// failed reports whether a code means that the server has failed.
func failed[Code ~uint32](c Code) bool {
	switch c {
	case codeUnknown, codeInternal, codeUnavailable, codeDataLoss, codeDeadlineExceeded:
		return true
	default:
		return false
	}
}

// OutcomeOf returns the outcome of a call with the context ctx that a handler has answered with a code; 0 is that of a success.
func OutcomeOf[Code ~uint32](ctx context.Context, c Code) spillway.Outcome {
	switch {
	case ctx.Err() != nil:
		if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) { // whether the client's clock or ours was first
			return spillway.OutcomeTimedOut
		}
		return spillway.OutcomeAbandoned
	case failed(c):
		return spillway.OutcomeFailed
	default:
		return spillway.OutcomeServed
	}
}
