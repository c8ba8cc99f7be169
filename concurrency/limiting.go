package concurrency

// While Limiting, the limit follows the throughput of rounds in which requests waited.

// whileLimiting takes in that a request has ended while there is a limit.
func (l *limit) whileLimiting(alone bool) {
	switch quiet := float64(l.working) < lean*l.rate*l.base; {
	case quiet != l.quiet:
		l.quiet = quiet
		l.restart()
	case quiet:
		l.idle()
	case l.startup && l.at-l.begin >= max(brief, seconds(l.base)) && l.ended >= max(round/2, int(l.window)):
		l.grow()
	case l.whole() && l.ended >= max(round, int(l.window)):
		l.follow(alone)
	case l.at-l.probed > memory && !l.pays():
		l.open() // a round may never end: all answers may be quick now
	}
}

// resize sets the limit by the bandwidth-delay product.
func (l *limit) resize() {
	l.window = float64(gain*l.rate*l.base) + float64(l.rate*brief.Seconds()) + 1
	l.restart()
}

// follow takes the throughput of a round in which requests waited: for the limit, or for one another, if the
// caller holds back others before the limit does. If that of all keys halves for a second, other requests
// than the ones that waited have the places: the keys do not wait for the same thing. A round in which the clock stood still moves nothing.
func (l *limit) follow(alone bool) {
	switch {
	case l.stood < l.begin:
		l.sound = l.at
	case l.blind():
		l.restart()
		return
	}
	flight, rate := l.measured()
	if l.unanswered(flight) {
		l.open()
		l.probe(flight, rate, 0)
		return
	}
	waited := l.held >= l.begin || flight > doubled*rate*l.base
	if waited || rate > l.rate {
		l.average(rate)
	}
	fell := l.lately*l.base < l.bdp/doubled
	if waited && fell && l.shared && !alone {
		l.clear()
		return
	}
	if waited && (l.at-l.probed > memory || fell) {
		if !l.pays() {
			l.open()
			return
		}
		l.probe(flight, rate, lean*rate*l.base)
		return
	}
	l.resize()
}

// blind reports whether the clock stood still in this round. What ended meanwhile seems to be quick, and many. If no other round
// ended for a memory, the process lacks the processor all the time, and they count.
func (l *limit) blind() bool { return l.stood >= l.begin && l.at-l.sound < memory }

// average takes a round into the throughput. Requests that began together end together, and how many
// of these ends a round has is chance: a short round with many of them counts for less. A long one
// counts twice at most, because the backend may have hung.
func (l *limit) average(rate float64) {
	took := inSeconds(l.at - l.begin)
	l.roundTime += float64((took - l.roundTime) / turns)
	weight := min(2, took/l.roundTime) / turns
	l.rate += float64(weight * (rate - l.rate))
	l.lately += float64(min(1, took/lasting.Seconds()) * (rate - l.lately))
}

// unused reports whether no request is at work that a limit is for, and none needed it for a memory.
func (l *limit) unused() bool {
	return l.state == Limiting && l.working == 0 && l.at-max(l.held, l.stood) > memory
}

// idle takes in a request that ended while there was not enough to do. Many of them, which waited
// for nothing, are a probe if their latency is that of the last one.
func (l *limit) idle() {
	switch {
	case l.at-max(l.held, l.stood) > memory:
		l.open()
	case l.ended >= round:
		flight, rate := l.measured()
		if now := flight / rate; lean*now < l.base && now > lean*l.base {
			l.probed, l.passed, l.turned = l.at, 0, 0
		}
		l.restart()
	}
}
