package concurrency

import "math"

// While a key is Open there is no limit. What is known of it is collected in rounds, and every fourth request that ends is a
// reason to look for evidence of a queue.

// whileOpen reports whether there is evidence of a queue.
func (l *limit) whileOpen(stall float64, busy bool) bool {
	l.looked = l.ended
	switch {
	case busy:
		l.restart()
		return false
	case !l.whole(), l.ended < round/2, l.ended < 2*round && l.working < round/2:
		return false // too early for a round to end, and for evidence
	}
	switch flight, rate := l.measured(); {
	case l.ofQueue(float64(l.working), rate, stall) && !l.wasClear(flight) && l.pays():
		return true
	case l.ended >= max(2*round, int(turns*flight)):
		if l.unanswered(flight) {
			return true
		}
		l.rate = rate
		l.latency.round(l.at)
		l.restart()
		if l.shared {
			l.generation++
		}
	}
	return false
}

// wasClear reports whether about as many in flight were found to be no queue.
func (l *limit) wasClear(flight float64) bool {
	return l.at-l.clearAt < memory && flight < doubled*l.cleared
}

func (l *limit) clear() {
	l.cleared, l.clearAt = l.before.flight, l.at
	l.open()
}

func (l *limit) open() {
	l.state, l.window = Open, math.Inf(1)
	l.restart()
}

func (l *limit) restart() {
	l.renew()
	l.lines = lines{}
	if l.state == Open {
		l.cohort = cohort{from: l.at, to: math.MaxInt64}
	}
}
