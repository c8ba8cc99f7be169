package concurrency

// Requests of a key need not wait for the same thing: an answer from a cache needs nothing of the pool that
// the others wait for. In a growing queue such quick requests end while more is in flight than a slow one had on average, so that
// a line through all latencies falls while each slow one waits longer; and they are gone in the first moment of a drain,
// so that throughput seems to fall. Where there are several, they are neither evidence nor counted in that comparison.

// answer takes in how long an answer took. It reports whether that is a failure that came sooner than usual,
// which says nothing: the work was not done.
func (l *limit) answer(took float64, failed, calm bool) (soon bool) {
	soon = failed && took < l.latency.mean
	if !soon {
		l.latency.add(l.at, took, calm)
	}
	if l.shared {
		l.fastest.add(l.at, took)
	}
	return soon
}

// quick reports whether an answer took an eighth of the usual latency at most, where several do. Once they
// do, a new round begins without them.
func (l *limit) quick(took float64) bool {
	usual := min(l.latency.mean, turns*l.latency.least()) // after a queue the mean is too long for a while
	if l.state != Open || l.within {
		return took < min(usual, l.base)/parkTime && l.mixed
	}
	quick := took < usual/parkTime
	l.share -= float64(l.share * l.latency.weight)
	if quick {
		l.share += l.latency.weight
	}
	if !l.mixed && l.share > several && l.latency.n >= round {
		l.mixed = true
		l.slower.reset(l.at, l.latency.least()/(1-l.share))
		l.restart()
	}
	return quick && l.mixed
}
