package requests

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
)

// A Rejection is the answer to a request that is not served. It has the fields of the Rejection of
// package ingress, to which it converts; the doc is there. The zero Rejection is none.
type Rejection struct {
	Outcome     spillway.Outcome
	DontRetry   bool
	RetryAfter  time.Duration
	AcceptRatio string
	Err         error
}

// Rejection returns the answer to a request that a [Step] rejects with err, and counts it.
func (a *Admission) Rejection(err error) Rejection {
	return a.settings.core.rejection(a.settings, a.Start, &a.Call, err)
}

// rejection returns the answer to a call that is rejected with err, and counts it.
func (c *Core) rejection(st *settings, now time.Time, call *spillway.Call, err error) (r Rejection) {
	r.Outcome, r.Err = spillway.OutcomeAbandoned, err
	rejected, ok := errors.AsType[*spillway.RejectedError](err)
	switch {
	case !ok: // the client has left
	case rejected.Reason == spillway.ReasonQuota:
		r.Outcome = spillway.OutcomeOverQuota
	default:
		r.Outcome = spillway.OutcomeOverloaded
	}
	c.rejected[r.Outcome].Add(1)
	if !ok {
		return r
	}
	r.AcceptRatio = c.signals.acceptRatio(st, call.Criticality).String()
	r.DontRetry = r.Outcome == spillway.OutcomeOverloaded && st.dontRetry(now, call)
	r.RetryAfter = st.config.RetryAfter
	// The hint of a limit is exact: a client that comes earlier is rejected, and one that comes
	// later loses nothing. So its jitter only adds.
	jitter := st.config.Rand()
	if rejected.RetryAfter > 0 {
		r.RetryAfter, jitter = rejected.RetryAfter, jitter+0.5
	}
	r.RetryAfter = time.Duration(float64(r.RetryAfter) * (0.5 + jitter))
	return r
}
