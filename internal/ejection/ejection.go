// Package ejection takes endpoints that have rejected a request for their own overload out of
// load balancing, for the time of their retry delay. The other endpoints get their requests
// meanwhile. A load balancer has an [Ejection] for each endpoint.
//
// An endpoint that rejects again soon after its return is left out for twice the last time.
// With a fixed time, each caller would have one request rejected in each such period, however
// many callers there are; with doubling, rejected callers stay away and served callers stay,
// until the endpoint gets the load that it can serve.
//
// Sources: Site Reliability Engineering, chapter 21, "Handling Overload Errors"; Envoy's
// outlier detection, which ejects for errors, for the word and the growing time.
package ejection

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/fault"
)

const (
	// Max is for how long an endpoint is left out at most, whatever it asks.
	Max = time.Minute
	// growth is the longest ejection, in multiples of the time that the endpoint asked for. Once it
	// has recovered, it has all of its requests back after as long.
	growth = 16
)

// An Ejection says until when one endpoint is left out. The zero Ejection leaves nothing
// out. It is safe for concurrent use.
type Ejection struct {
	until  atomic.Int64 // in nanoseconds since 1970
	lasted atomic.Int64 // for how long it was left out up to then
}

// Failed is called at the time now with what the failure of an attempt at the endpoint
// means. It reports whether the endpoint is left out from now on, and until when. Attempts
// that were under way when that began make no difference.
func (e *Ejection) Failed(now time.Time, f fault.Failure) (until time.Time, ejected bool) {
	if !f.Overload || f.Scope != fault.ScopeTask || !f.HasRetryAfter || f.RetryAfter <= 0 || e.Active(now) {
		return until, false
	}
	asked := min(f.RetryAfter, Max)
	old := e.until.Load()
	d := e.next(asked, now.UnixNano()-old)
	until = now.Add(d)
	if !e.until.CompareAndSwap(old, until.UnixNano()) { // another attempt has just done the same
		return until, false
	}
	e.lasted.Store(int64(d))
	return until, true
}

// next returns for how long to leave the endpoint out that asks for so long, and that came
// back so many nanoseconds ago.
func (e *Ejection) next(asked time.Duration, back int64) time.Duration {
	last := e.lasted.Load()
	if back < 0 || back >= last {
		return asked
	}
	return max(asked, min(2*time.Duration(last), growth*asked, Max))
}

// Active reports whether the endpoint is left out at the time now. A clock that was set
// back does not prolong that beyond Max.
func (e *Ejection) Active(now time.Time) bool {
	until := e.until.Load()
	return until != 0 && now.UnixNano() < until && until-now.UnixNano() <= int64(Max)
}
