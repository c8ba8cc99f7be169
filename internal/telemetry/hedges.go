package telemetry

import (
	"sync/atomic"

	"github.com/seed90641741/spillway"
)

// PolicyHedge is the policy of events about hedges. They are no decisions on a request or an
// attempt, which goes on in any case.
const PolicyHedge = "hedge"

// HedgeAdvice is what an operator can do about hedges that no budget pays for.
const HedgeAdvice = "most calls are slow, or hedges do not help, so they would only add load: find out why the backend is slow"

// hedges counts hedges by result. The zero hedges is ready for use, and safe for concurrent use.
type hedges [len(hedgeResults)]atomic.Uint64

var hedgeResults = [...]string{"won", "lost", "rejected"}

// HedgeResult returns the label result of an event about a hedge.
func HedgeResult(e *spillway.Event) string { return hedgeResults[hedgeResult(e)] }

func hedgeResult(e *spillway.Event) int {
	switch {
	case e.Rejected:
		return 2
	case e.Outcome == spillway.OutcomeServed:
		return 0
	default:
		return 1
	}
}

func (h *hedges) add(e *spillway.Event) { h[hedgeResult(e)].Add(1) }

// report reports the counts, unless no hedge was due.
func (h *hedges) report(report func(x *Metric, n uint64, labels ...string)) {
	var counts [len(hedgeResults)]uint64
	for i := range h {
		counts[i] = h[i].Load()
	}
	if counts == [len(hedgeResults)]uint64{} {
		return
	}
	for i, n := range counts {
		report(&Hedges, n, hedgeResults[i])
	}
}
