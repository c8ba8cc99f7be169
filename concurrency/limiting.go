package concurrency

// While Limiting, the limit follows the throughput of rounds in which requests waited. The limit
// ends when it has held back no request for ten seconds.

// whileLimiting takes the action of the state Limiting after a request has ended.
func (l *limit) whileLimiting() {
	switch quiet := float64(l.working) < lean*l.rate*l.base; {
	case quiet != l.quiet:
		l.quiet = quiet
		l.restart()
	case quiet && l.at-max(l.held, l.stood) > l.memory():
		l.open()
	case !quiet && l.whole() && l.ended >= max(round, int(l.window)):
		l.follow()
	}
}

// follow updates the throughput at the end of a round in which requests waited. They may have
// waited for the limit, or for one another in the backend, if the caller holds requests back before
// the limit is reached. A round in which the clock stood still changes nothing.
func (l *limit) follow() {
	switch {
	case l.stood < l.begin:
		l.sound = l.at
	case l.blind():
		l.restart()
		return
	}
	flight, rate := l.measured()
	waited := l.held >= l.begin || flight > doubled*rate*l.base
	if waited || rate > l.rate {
		l.rate += float64((rate - l.rate) / turns)
	}
	if waited && l.at-l.probed > l.memory() {
		l.try(flight, rate, lean*rate*l.base)
		return
	}
	l.resize()
}

// resize computes the limit from the bandwidth-delay product.
func (l *limit) resize() {
	l.window = float64(gain*l.rate*l.base) + float64(l.rate*brief.Seconds()) + 1
	l.restart()
}

// blind reports whether this round measures nothing, because the clock stood still in it: the
// requests that end meanwhile seem to be quick and many. If no other round has ended for ten
// seconds, the process lacks the processor all the time, and such rounds count.
func (l *limit) blind() bool { return l.stood >= l.begin && l.at-l.sound < memory }
