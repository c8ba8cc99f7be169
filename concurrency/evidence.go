package concurrency

import "time"

// evidence is what the latencies of a key show, or of all keys together.
type evidence struct {
	shared  bool // of all keys: only a queue that delays everybody counts
	latency latency
	cohort  cohort // requests that began in a round while Open, and in the last one before a probe

	lines
}

// lines show how latency grows in a round.
type lines struct {
	fit        fit                                 // over the mean in flight meanwhile
	young      fit                                 // the same, of requests that began in this round only
	came       fit                                 // over what was found in flight
	quickest   struct{ found, left, took float64 } // of a few, for the shared limit
	candidates int
	stands     bool // a queue was seen: its latency is not the usual one
}

// A cohort is the requests that began in some period: what they found in flight, and how long they took. The whole cohort shows
// the latency of a request. At any moment mostly its quick requests have ended.
type cohort struct {
	from, to time.Duration
	flight   float64 // at the end of the period
	fit              // of latency over what was found in flight
}

// see takes in an answer, if it is one of the cohort.
func (c *cohort) see(began time.Duration, found, took float64) {
	if began >= c.from && began < c.to {
		c.add(found, took)
	}
}

// learn adds an answer to the lines that may show a queue; young says that it began in this round.
func (e *evidence) learn(took, found, left float64, young bool) {
	if young {
		e.young.add(float64((found+left)/2), took)
	}
	if !e.shared {
		e.fit.add(float64((found+left)/2), took)
		e.came.add(found, took)
		return
	}
	if q := &e.quickest; e.candidates == 0 || took < q.took {
		q.found, q.left, q.took = found, left, took
	}
	if e.candidates++; e.candidates == group {
		q := &e.quickest
		e.fit.add(float64((q.found+q.left)/2), q.took)
		e.came.add(q.found, q.took)
		e.candidates = 0
	}
}

// ofQueue returns the latency with so many in flight, if latency grows with what is in flight, and else 0. Where it grows faster
// than a queue, what is in flight has grown while requests waited, and what they found there counts. If
// latency jumps while they find the same number as before, that is not why. The requests that began in this round must show the
// queue, too: after a burst only its slow requests are left, which had found the most in flight. A few in flight need no limit.
func (e *evidence) ofQueue(working, rate float64) (latency float64) {
	line, young := &e.fit, &e.young
	_, sigmas := line.slope()
	if line.elasticity() >= sudden && e.inOrder(rate) {
		line, young = &e.came, &e.came
		_, found := line.slope()
		sigmas = min(sigmas, found)
	}
	if working >= round/2 && (e.shared || line.n >= round/2) && sigmas > certain &&
		line.elasticity() > elastic && max(line.elasticity(), e.came.elasticity()) < sudden && young.n >= group {
		return min(line.at(working), young.at(working))
	}
	return 0
}

// inOrder reports whether what is in flight has doubled while requests waited, and as many of them ended
// meanwhile as each had found: they wait for one another. Without a queue the first requests to end are
// the quickest, which overtake the others.
func (e *evidence) inOrder(rate float64) bool {
	mean, _ := e.fit.means()
	found, took := e.came.means()
	return 2*mean-found >= doubled*found && rate*took >= lean*found
}

// confirmed reports whether the evidence of a queue holds with the latency of a probe: the requests before the probe took longer than
// a limit would let them. With nothing in flight there is nothing to compare: callers paused, and no queue was found.
func (e *evidence) confirmed(latency float64) bool {
	return latency > 0 && gain*latency < e.cohort.at(e.cohort.flight)
}
