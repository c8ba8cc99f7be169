package concurrency

import "math"

// While Open there is no learnt limit. Latencies are collected in rounds, and after every fourth
// request that ends, the limit looks for evidence of a queue.

// whileOpen reports whether there is evidence of a queue, and begins a new round if this one is
// complete. For stall and busy see decide.
func (l *limit) whileOpen(stall float64, busy bool) bool {
	l.looked = l.ended
	switch {
	case busy:
		l.restart()
		return false
	case !l.whole(), l.latency.least() == 0, l.ended < round/2, l.ended < 2*round && l.working < round/2:
		return false // too early for evidence, and for the end of the round
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
		switch {
		case l.stands && l.borne() > usual:
			l.settles = l.at + l.memory()
		case !l.stands && l.at >= l.settles:
			l.latency.settle(l.at)
		}
		l.restart()
	}
	return false
}

// borne returns the highest latency, in seconds, for which the deadlines that callers send leave
// time: up to it a queue is no evidence. It is well below the time that the most urgent requests
// have, such as the last calls of a task. Without deadlines it is 0.
func (l *limit) borne() float64 {
	return min(lean*l.rest, max((1+doubled)*l.latency.least(), min(l.urgent/turns, lasting.Seconds())))
}

// fewAnswered reports whether at most a quarter of the requests of a round were answered, with a
// mean latency above twice the least. That is evidence of a queue, too: the latency of requests
// that end at their deadlines does not show how long they would wait.
func (l *limit) fewAnswered() bool {
	return l.ended >= 2*round && turns*float64(l.served) <= float64(l.ended) && l.working >= round/2 && l.latency.mean > doubled*l.latency.least()
}

// wasClear reports whether a recent trial found no queue with about as many in flight.
func (l *limit) wasClear(flight float64) bool {
	return l.at-l.clearAt < l.memory() && flight < doubled*l.cleared
}

// open ends the limit, or a trial that found no queue.
func (l *limit) open() {
	l.state, l.window = Open, math.Inf(1)
	l.restart()
}

// restart begins a new round, and forgets the evidence of the last one.
func (l *limit) restart() {
	l.renew()
	l.lines = lines{}
	if l.state == Open {
		l.cohort = cohort{from: l.at, to: math.MaxInt64}
	}
}
