// Package ejection leaves endpoints out of load balancing that have refused a request for
// overload of their own: for as long as they asked. The other endpoints get their requests
// meanwhile. Whoever chooses among endpoints has an [Ejection] for each.
//
// Source: Site Reliability Engineering, chapter 21, "Handling Overload Errors". The word is
// that of Envoy's outlier detection, which ejects for errors.
package ejection

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// Max is for how long an endpoint is left out at most, whatever it asks.
const Max = time.Minute

// An Ejection says until when one endpoint is left out. The zero Ejection leaves nothing
// out. It is safe for concurrent use.
type Ejection struct{ until atomic.Int64 } // in nanoseconds since 1970

// Failed is called at the time now with what the failure of an attempt at the endpoint
// means. It reports whether the endpoint is now left out, and until when.
func (e *Ejection) Failed(now time.Time, f fault.Failure) (until time.Time, ejected bool) {
	if !f.Overload || f.Scope != fault.ScopeTask || !f.HasRetryAfter || f.RetryAfter <= 0 {
		return until, false
	}
	until = now.Add(min(f.RetryAfter, Max))
	for {
		old := e.until.Load()
		if old >= until.UnixNano() || e.until.CompareAndSwap(old, until.UnixNano()) {
			return until, true
		}
	}
}

// Active reports whether the endpoint is left out at the time now. It is if time has
// stepped back by no more than Max.
func (e *Ejection) Active(now time.Time) bool {
	until := e.until.Load()
	return until != 0 && now.UnixNano() < until && until-now.UnixNano() <= int64(Max)
}
