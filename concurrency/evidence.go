package concurrency

import "time"

// A cohort is the requests that began in some period: what they found in flight, and how long they took. The whole cohort shows
// the latency of a request. At any moment mostly its quick requests have ended.
type cohort struct {
	from, to time.Duration
	flight   float64 // at the end of the period
	fit              // of latency over what was found in flight
}

// learn adds an answer to the lines that may show a queue; young says that it began in this round.
func (l *limit) learn(took, found, left, all float64, young bool) {
	if young {
		l.young.add(float64((found+left)/2), took)
	}
	if !l.shared {
		l.fit.add(float64((found+left)/2), took)
		l.came.add(found, took)
		if !l.known {
			l.common[l.generation&1].add(all, took)
		}
		return
	}
	if q := &l.quickest; l.candidates == 0 || took < q.took {
		q.found, q.left, q.took = found, left, took
	}
	if l.candidates++; l.candidates == group {
		q := &l.quickest
		l.fit.add(float64((q.found+q.left)/2), q.took)
		l.came.add(q.found, q.took)
		l.candidates = 0
	}
}

// evidence reports whether latency grows with what is in flight. Where it grows faster than a queue,
// what is in flight has grown while requests waited, and what they found there counts. If
// latency jumps while they find the same number as before, that is not why. The requests that began in this round must show the
// queue, too: after a burst only its slow requests are left, which had found the most in flight. A few in flight need no limit.
func (l *limit) evidence(rate, stall float64) bool {
	working := float64(l.working)
	line, young := &l.fit, &l.young
	_, sigmas := line.slope()
	if line.elasticity() >= sudden && l.inOrder(rate) {
		line, young = &l.came, &l.came
		_, found := line.slope()
		sigmas = min(sigmas, found)
	}
	return working >= round/2 && (l.shared || line.n >= round/2) && sigmas > certain &&
		line.elasticity() > elastic && max(line.elasticity(), l.came.elasticity()) < sudden &&
		young.n >= group && min(line.at(working), young.at(working)) > doubled*l.latency.least()+brief.Seconds()+stall
}

// inOrder reports whether what is in flight has doubled while requests waited, and as many of them ended
// meanwhile as each had found: they wait for one another. Without a queue the first requests to end are
// the quickest, which overtake the others.
func (l *limit) inOrder(rate float64) bool {
	mean, _ := l.fit.means()
	found, took := l.came.means()
	return 2*mean-found >= doubled*found && rate*took >= lean*found
}

// confirmed reports whether the evidence of a queue holds with the latency of a probe: the requests before the probe took longer than
// a limit would let them. With nothing in flight there is nothing to compare: callers paused, and no queue was found.
func (l *limit) confirmed(latency float64) bool {
	return latency > 0 && gain*latency < l.cohort.at(l.cohort.flight)
}
