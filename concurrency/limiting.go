package concurrency

// While Limiting, the limit follows the throughput of rounds in which requests waited. It ends when none has waited for a memory.

// whileLimiting takes in that a request has ended while there is a limit.
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

// follow takes the throughput of a round in which requests waited: for the limit, or for one another, if the
// caller holds back others before the limit does. A round in which the clock stood still moves nothing.
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

// resize sets the limit by the bandwidth-delay product.
func (l *limit) resize() {
	l.window = float64(gain*l.rate*l.base) + float64(l.rate*brief.Seconds()) + 1
	l.restart()
}

// blind reports whether the clock stood still in this round. What ended meanwhile seems to be quick, and many. If no other round
// ended for a memory, the process lacks the processor all the time, and they count.
func (l *limit) blind() bool { return l.stood >= l.begin && l.at-l.sound < memory }
