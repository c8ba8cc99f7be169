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
	case !l.whole(), l.latency.least() == 0, l.ended < round/2, l.ended < 2*round && l.working < round/2:
		return false // too early for a round to end, and for evidence
	}
	flight, rate := l.measured()
	queued := l.ofQueue(float64(l.working), rate)
	usual := doubled * l.latency.least()
	l.stands = l.stands || queued > usual
	switch {
	case (l.fewAnswered() || queued > max(usual, l.borne())+brief.Seconds()+stall) && !l.wasClear(flight):
		return true
	case l.ended >= max(2*round, int(turns*flight)):
		l.rate = rate
		if !l.stands {
			l.latency.settle(l.at)
		}
		l.restart()
	}
	return false
}

// borne returns the latency up to which a queue does no harm, where deadlines are sent: it is well before those of the most urgent
// requests, such as the last calls of a task.
func (l *limit) borne() float64 {
	return min(lean*l.rest, max((1+doubled)*l.latency.least(), min(l.urgent/turns, lasting.Seconds())))
}

// fewAnswered reports whether most requests of a round ended without an answer, and took twice the least latency until then. That is
// evidence, too: deadlines hide how long requests would wait.
func (l *limit) fewAnswered() bool {
	return l.ended >= 2*round && turns*float64(l.served) <= float64(l.ended) && l.working >= round/2 && l.latency.mean > doubled*l.latency.least()
}

// wasClear reports whether about as many in flight were found to be no queue.
func (l *limit) wasClear(flight float64) bool {
	return l.at-l.clearAt < l.memory() && flight < doubled*l.cleared
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
