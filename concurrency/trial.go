package concurrency

import (
	"math"
	"time"
)

// A trial finds out whether requests wait for one another: with fewer in flight they must take less
// time. While Draining nothing starts, until only the requests that should be in service are left.
// While Probing that many stay in flight, and a round measures their latency and throughput. A
// first trial decides whether there is a queue; later ones measure the base latency again.
//
// A trial must cost little where there is no queue. So a drain stops everything for one second
// only. After that half as many requests start as end, while any request is answered, and until
// four base latencies have passed. The requests that are left then wait in a queue, and starting
// more of them would not serve them sooner.

// trial is the current trial of a limit, or the last one.
type trial struct {
	before struct { // the state when the trial began
		// limiting means that this is a later trial, which began while Limiting.
		limiting bool
		// flight is how many requests were in flight.
		flight float64
		rate   float64 // throughput in answers per second
		calls  float64 // answers that the probe needs
	}
	target float64       // number of requests that end the drain
	probe  time.Duration // when the probe began
	// lost is how many requests began in the probe and ended without an answer, although they waited
	// for as long as an answer takes.
	lost int
}

// suspect begins a first trial, after evidence of a queue.
func (l *limit) suspect() {
	_, rate := l.measured()
	l.base, l.rate = l.latency.least(), rate
	l.cohort.to, l.cohort.flight = l.at, float64(l.working)
	l.try(float64(l.working), rate, rate*l.base)
	l.before.calls = round
}

// try begins a trial that leaves at most window requests in flight. It leaves fewer where
// necessary, so that under the limit that follows requests end in half of the time to their
// deadlines. flight and rate are the requests in flight and the answers per second before the
// trial.
func (l *limit) try(flight, rate, window float64) {
	l.before.limiting, l.before.flight, l.before.rate, l.before.calls = l.state == Limiting, flight, rate, 2*round
	if l.rest > 0 {
		window = min(window, rate*l.rest/(doubled*gain))
	}
	l.drain(window)
}

// drain lets no request start until at most window are left.
func (l *limit) drain(window float64) {
	l.state, l.target = Draining, max(1, window)
	l.window, l.slow.unanswered = l.target, 0
	l.restart()
}

// whileDraining takes the action of the state Draining after a request has ended.
func (l *limit) whileDraining() {
	switch {
	case float64(l.working) <= l.target:
		l.measure()
	case l.at-l.begin > lasting && inSeconds(l.at-l.begin) < turns*l.base && l.heard >= l.begin:
		l.window = float64(l.working + 1 - l.ended%2) // half as many start as end
	default:
		l.window = l.target
	}
}

// measure begins the round of a probe. The drain has also measured the throughput, because the
// backend had enough to do all the time. This was not certain in the round with the evidence, so
// the higher one of the two throughputs counts. The requests that ended in the drain were served
// during it, or in the base latency before it. The requests that are left after the drain stay in
// flight.
func (l *limit) measure() {
	if !l.blind() {
		l.rate = max(l.rate, float64(l.served)/(inSeconds(l.at-l.begin)+l.base))
	}
	l.state, l.window = Probing, max(l.target, float64(l.working))
	l.probe, l.lost = l.at, 0
	l.restart()
}

// whileProbing takes the action of the state Probing after a request has ended. The probe ends with
// the answers that it needs, or when four times as many requests have ended.
func (l *limit) whileProbing() {
	if l.whole() && max(float64(l.served), float64(l.ended)/turns) >= l.probeCalls() {
		l.conclude()
	}
}

// probeCalls returns how many answers a probe needs. A first probe is short, because new requests
// wait for it. A turn is as many answers as requests are in flight. Requests that began together
// end together, so a part of a turn may have all of them or none. So a probe of less than two turns
// takes whole turns; in a longer one, a part of a turn matters little.
func (l *limit) probeCalls() float64 {
	calls, turn := l.before.calls, math.Ceil(l.window)
	if 2*turn <= calls {
		return calls
	}
	return turn * math.Ceil(calls/turn)
}

// expire ends a part of a trial that takes too long: a drain after four times the time in which a
// queue drains, a probe after twice the time that it should take. The requests that are left then
// do not wait in that queue.
func (l *limit) expire() {
	took := inSeconds(l.at-l.begin) * l.before.rate / doubled
	switch {
	case l.state == Draining && took > doubled*l.before.flight:
		l.measure()
	case l.state == Probing && took > max(l.before.flight, l.probeCalls()):
		l.conclude()
	}
}

// slower reports whether the backend is slow by itself: a fifth of the requests that began in a
// probe, or more, got no answer, although few requests were in flight before them.
func (l *limit) slower() bool { return turns*float64(l.lost) >= float64(l.served) }

// conclude ends a trial. The base latency is that of answered requests only: requests that are left
// from the queue may be in service when their clients leave, so the time that they take is not that
// of an answer. In a later trial, a probe in which the clock stood still, or in which fewer than 32
// requests ended, does not change the throughput and the base latency.
func (l *limit) conclude() {
	flight, rate := l.measured()
	took, base := flight/rate, l.base
	queue := l.before.limiting || l.confirmed(took) && !l.slower()
	l.probed = l.at
	full := rate > (1+lean)/2*l.rate
	if !l.before.limiting || !l.blind() && l.ended >= round {
		l.rate = max(l.rate, rate)
		if l.worked > 0 && l.each() > 0 { // the latency of failures does not count
			// The backend may have stood still during a later probe.
			if l.base = l.each(); l.before.limiting {
				l.base = min(l.base, doubled*base)
			}
		}
	}
	l.latency.reset(l.at, l.base)
	if !queue {
		l.cleared, l.clearAt = l.before.flight, l.at
		l.open()
		return
	}
	// The throughput has not fallen, so fewer requests in flight may be enough.
	if full && !l.before.limiting && l.window > 1 && l.at-l.begin < lasting {
		l.drain(min(lean*flight, math.Ceil(l.window)-1))
		return
	}
	l.state = Limiting
	l.resize()
}
