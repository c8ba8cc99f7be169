package concurrency

import "time"

// evidence is what the latencies of one key show, or those of all keys together.
type evidence struct {
	shared  bool // it is the evidence for all keys: only a queue that delays every request counts
	latency latency
	cohort  cohort // requests that began in this round; during a trial, in the round before it

	lines
}

// lines show how the latency of the requests that end in a round depends on how many are in flight.
// A line has one point for each request, or, if shared, for the quickest request of each group.
type lines struct {
	fit   fit // latency over the mean of the numbers in flight when the request began and ended
	young fit // the same for requests that began in this round, always with a point for each
	came  fit // latency over the number in flight when the request began
	// quickest is the quickest request of the current group, if shared: the numbers in flight when
	// it began and ended, and its latency in seconds.
	quickest struct{ found, left, took float64 }
	// candidates is the number of requests in the current group, if shared: 0 to 7.
	candidates int
	// stands means that a queue was seen in this round, so the latency of the round is not the usual
	// one.
	stands bool
}

// A cohort is all requests that began in some period, with their latencies and the number in flight
// when each began. It shows the latency of all requests, while the requests that have ended at some
// moment are mostly the quick ones.
type cohort struct {
	from, to time.Duration // the period: from is part of it, to is not
	flight   float64       // requests in flight at the end of the period
	fit                    // latency over requests in flight when each began
}

// see records a request if it belongs to the cohort. took is its latency in seconds, and found the
// number of requests in flight when it began.
func (c *cohort) see(began time.Duration, found, took float64) {
	if began >= c.from && began < c.to {
		c.add(found, took)
	}
}

// learn adds a request that has ended to the lines. took is its latency in seconds. found and left
// are the numbers in flight when it began and when it ended. young means that it began in this
// round. For all keys together only the quickest request of each group counts, because a queue in
// front of all keys delays the quickest request, too.
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

// ofQueue returns the latency in seconds that is expected with working requests in flight, if
// latency grows with the number in flight as it does in a queue. It returns 0 if there is no such
// evidence. rate is the throughput in answers per second.
//
// If latency grows faster than in a queue, the number in flight may have grown while requests
// waited. Then ofQueue uses the number in flight when each request began. If latency still grows
// too fast, a queue is not the reason. The requests that began in this round must show the queue,
// too: after a burst only its slow requests are left, and when they began, the most requests were
// in flight. Fewer than 16 requests in flight need no limit.
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

// inOrder reports whether requests end in the order in which they began, as they do in a queue: the
// number in flight has at least doubled while they waited, and in that time about as many requests
// ended as were in flight when each began. Without a queue the first requests to end are the
// quickest, which overtake the others. rate is the throughput in answers per second.
func (e *evidence) inOrder(rate float64) bool {
	mean, _ := e.fit.means()
	found, took := e.came.means()
	return 2*mean-found >= doubled*found && rate*took >= lean*found
}

// confirmed reports whether a probe confirms the evidence of a queue: requests before the trial
// took more than 1.5 times the latency in the probe. latency is the latter, in seconds; 0 means
// that nothing was in flight in the probe, so no queue was found.
func (e *evidence) confirmed(latency float64) bool {
	return latency > 0 && gain*latency < e.cohort.at(e.cohort.flight)
}
