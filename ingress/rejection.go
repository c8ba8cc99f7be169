package ingress

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// A Rejection is the answer to a request that is not served. It is a value, so
// that rejecting allocates nothing. The zero Rejection is none.
type Rejection struct {
	// Outcome is what the client learns. Zero means that the request was not
	// rejected; otherwise it is one of
	//   - [spillway.OutcomeOverloaded]: this server has too much to do, others may not;
	//   - [spillway.OutcomeOverQuota]: this customer asks for too much, of all servers;
	//   - [spillway.OutcomeAbandoned]: the client went away, or its deadline passed,
	//     while the request waited. No client reads the answer.
	Outcome spillway.Outcome
	// DontRetry says that the other servers seem to be overloaded as well: the
	// caller should pass the failure on instead of trying another server.
	DontRetry bool
	// RetryAfter is the hint when to retry here, with jitter: clients that were
	// rejected together must not return together. It is above zero unless the
	// Outcome is Abandoned.
	RetryAfter time.Duration
	// AcceptRatio is what [Server.AcceptRatio] says of the criticality of the call,
	// empty if there is nothing to tell.
	AcceptRatio string
	// Err says which gate rejected and why: a *[spillway.RejectedError], which is shared
	// and must not be changed, or the error of the context where the client left.
	Err error
}

// Rejected reports whether the request was rejected.
func (r Rejection) Rejected() bool { return r.Outcome != 0 }

// Scope returns for what r holds: this process, all servers of the service, or the customer. The
// answer must state it.
func (r Rejection) Scope() fault.Scope {
	switch {
	case r.Outcome == spillway.OutcomeOverQuota:
		return fault.ScopeCustomer
	case r.Outcome != spillway.OutcomeOverloaded:
		return fault.ScopeUnknown
	case r.DontRetry:
		return fault.ScopeService
	default:
		return fault.ScopeTask
	}
}
