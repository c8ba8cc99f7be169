package concurrency

import "math"

// A trial finds out whether requests wait for one another: with fewer in flight they must take less time. While Draining nothing starts,
// until only what should be in service is left. While Probing a round shows latency and throughput with so many. A first trial decides
// whether there was a queue; later ones measure the base latency again.
//
// A trial must not cost much where there is no queue: a drain stops everything for a second. Then half as many start as end, while anything
// is answered in time, and until four base latencies have passed. What is left then waits in a queue, and is not served sooner by more of it.

// trial is what a trial compares.
type trial struct {
	before struct { // the trial began
		limiting bool
		flight   float64
		rate     float64 // answers per second
		calls    float64 // that the probe takes
	}
	target float64 // requests that are left when the drain ends
}

// suspect begins a first trial.
func (l *limit) suspect() {
	_, rate := l.measured()
	l.base, l.rate = l.latency.least(), rate
	l.cohort.to, l.cohort.flight = l.at, float64(l.working)
	l.try(float64(l.working), rate, rate*l.base)
	l.before.calls = round
}

// try begins a trial, in which no more than window are left: so few that the limit after it is answered in half of the time to the
// deadlines. Before it, so many were in flight, and so many per second were answered.
func (l *limit) try(flight, rate, window float64) {
	l.before.limiting, l.before.flight, l.before.rate, l.before.calls = l.state == Limiting, flight, rate, 2*round
	if l.rest > 0 {
		window = min(window, rate*l.rest/(doubled*gain))
	}
	l.drain(window)
}

// drain lets nothing start until no more than window are left.
func (l *limit) drain(window float64) {
	l.state, l.target = Draining, max(1, window)
	l.window, l.slow.unanswered = l.target, 0
	l.restart()
}

// whileDraining takes in that a request has ended in a drain.
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

// measure begins the round of a probe. What was served in the drain is the throughput with all in service at work, which the round with the
// evidence need not show: it was in service within the drain, or for the base latency before. What is left after the drain stays in flight.
func (l *limit) measure() {
	if !l.blind() {
		l.rate = max(l.rate, float64(l.served)/(inSeconds(l.at-l.begin)+l.base))
	}
	l.state, l.window = Probing, max(l.target, float64(l.working))
	l.restart()
}

// whileProbing takes in that a request has ended in the round of a probe. It ends with its answers, or when four times as many have ended.
func (l *limit) whileProbing() {
	if l.whole() && max(float64(l.served), float64(l.ended)/turns) >= l.probeCalls() {
		l.conclude()
	}
}

// probeCalls is how many answers a probe takes. A first one is short: new requests wait for it. Requests that began together end together,
// so that a part of a turn, in which as many end as are in flight, may have all of them or none. It counts for little after two turns.
func (l *limit) probeCalls() float64 {
	calls, turn := l.before.calls, math.Ceil(l.window)
	if 2*turn <= calls {
		return calls
	}
	return turn * math.Ceil(calls/turn)
}

// expire ends a part of a trial that takes too long: what is left after four times the time in which a queue drains, or after twice the time
// of a probe, does not wait in that queue.
func (l *limit) expire() {
	took := inSeconds(l.at-l.begin) * l.before.rate / doubled
	switch {
	case l.state == Draining && took > doubled*l.before.flight:
		l.measure()
	case l.state == Probing && took > max(l.before.flight, l.probeCalls()):
		l.conclude()
	}
}

// conclude ends a trial. A probe of a limit in which the clock stood still, or in which few requests ended, tells nothing.
func (l *limit) conclude() {
	flight, rate := l.measured()
	took, base := flight/rate, l.base
	queue := l.before.limiting || l.confirmed(took)
	l.probed = l.at
	full := rate > (1+lean)/2*l.rate
	if !l.before.limiting || !l.blind() && l.ended >= round {
		l.rate = max(l.rate, rate)
		if l.worked > 0 && flight > 0 { // how long failures take is no latency
			if l.base = took; l.before.limiting { // the backend may have stood still meanwhile
				l.base = min(took, doubled*base)
			}
		}
	}
	l.latency.reset(l.at, l.base)
	if !queue {
		l.cleared, l.clearAt = l.before.flight, l.at
		l.open()
		return
	}
	if full && !l.before.limiting && l.window > 1 && l.at-l.begin < lasting { // with as much throughput, fewer may do
		l.drain(min(lean*flight, math.Ceil(l.window)-1))
		return
	}
	l.state = Limiting
	l.resize()
}
