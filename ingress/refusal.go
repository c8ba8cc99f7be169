package ingress

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// Reason says why a request was refused, as the client learns it.
type Reason uint8

// The reasons. The zero Reason is none: the request was not refused.
const (
	// Overloaded: this server has too much to do. Another may have room.
	Overloaded Reason = iota + 1
	// OverQuota: this customer asks for too much. Another server will say so too.
	OverQuota
	// Left: the client went away, or its deadline passed, while the request
	// waited. No client reads the answer.
	Left
	reasons
)

// Reasons is how many values a [Reason] can have, for tables.
const Reasons = int(reasons)

var reasonNames = [Reasons]string{"admitted", "overloaded", "over quota", "left"}

// String returns a lower-case word or two for r.
func (r Reason) String() string {
	if int(r) >= len(reasonNames) {
		return "invalid"
	}
	return reasonNames[r]
}

// A Refusal is what to answer to a request that is not served. It is a value, so
// that refusing allocates nothing. The zero Refusal is none.
type Refusal struct {
	// Reason is zero if the request was not refused.
	Reason Reason
	// DontRetry says that the others seem to be overloaded as well: the caller
	// should pass the failure on instead of trying another server.
	DontRetry bool
	// RetryAfter is when it makes sense to come back here, with jitter: clients
	// that were refused together must not come back together. It is above zero
	// unless the client Left.
	RetryAfter time.Duration
	// AcceptRatio is what [Server.AcceptRatio] says of the criticality of the call,
	// empty if there is nothing to tell.
	AcceptRatio string
	// Err says who refused and why: a *[spillway.RejectedError], which is shared
	// and must not be changed, or the error of the context where the client Left.
	Err error
}

// Refused reports whether r is a refusal.
func (r Refusal) Refused() bool { return r.Reason != 0 }

// Scope returns how far r reaches, which the answer must state.
func (r Refusal) Scope() fault.Scope {
	switch {
	case r.Reason == OverQuota:
		return fault.ScopeCustomer
	case r.Reason != Overloaded:
		return fault.ScopeUnknown
	case r.DontRetry:
		return fault.ScopeService
	default:
		return fault.ScopeTask
	}
}

// refuse makes a Refusal of an error that a gate returned, and counts it.
func (s *Server) refuse(st *settings, now time.Time, call *spillway.Call, reason Reason, err error) Refusal {
	s.refused[reason].Add(1)
	r := Refusal{Reason: reason, Err: err}
	if reason == Left {
		return r
	}
	r.AcceptRatio = s.AcceptRatio(call.Criticality)
	r.DontRetry = reason == Overloaded && st.dontRetry(now, call)
	r.RetryAfter = st.config.RetryAfter
	// The hint of a limit is exact: earlier makes no sense, later does not matter.
	jitter := st.config.Rand()
	if rejected, ok := errors.AsType[*spillway.RejectedError](err); ok && rejected.RetryAfter > 0 {
		r.RetryAfter, jitter = rejected.RetryAfter, jitter+0.5
	}
	r.RetryAfter = time.Duration(float64(r.RetryAfter) * (0.5 + jitter))
	return r
}
