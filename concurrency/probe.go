package concurrency

import (
	"math"
	"time"
)

// A probe has two parts. While Draining nothing starts, until only what should be in service is left. While Probing a round shows latency
// and throughput with so many. A first probe decides whether there was a queue; later ones measure the base latency again.

// probing is what a probe compares.
type probing struct {
	before struct { // the last probe began
		limiting bool
		flight   float64
		rate     float64 // per second: what was answered, without what was quick
		calls    float64 // that the probe takes
	}
	last  float64                        // latency of the last probe
	drain struct{ served, took float64 } // the last one
	half  struct {                       // the last time that what is in flight has halved in a drain
		flight   int
		took, at time.Duration
	}
}

// suspect begins a first probe.
func (l *limit) suspect() {
	_, rate := l.measured()
	l.base, l.rate = l.latency.least(), rate
	l.probe(float64(l.working), l.rate, l.rate*l.base)
}

// probe lets nothing start until no more than window is left. Before, so many were in flight, and so many per second were
// answered and not quick. No more than window are left that the limit after the probe is answered in half of the time to the deadlines.
func (l *limit) probe(flight, rate, window float64) {
	l.before.limiting, l.before.flight, l.before.rate = l.state == Limiting, flight, rate
	l.before.calls = round
	l.search, l.up, l.bounded, l.some = !l.before.limiting && l.overdue, 0, false, false
	l.overdue = false
	if l.search {
		window = flight / doubled
	} else if l.rest > 0 {
		window = min(window, rate*l.rest/(doubled*gain))
	}
	if l.before.limiting {
		l.before.calls = 2 * round
	} else {
		l.cohort.to, l.cohort.flight = l.at, float64(l.working)
	}
	l.empty(window)
}

// empty begins a drain.
func (l *limit) empty(window float64) {
	l.state, l.window = Draining, max(1, window)
	l.half.flight, l.half.took, l.half.at = l.working, 0, l.at
	l.restart()
}

// whileDraining takes in that a request has ended in a drain.
func (l *limit) whileDraining() {
	switch h := &l.half; {
	case float64(l.working) <= l.window || l.fades():
		l.measure()
	case 2*l.working <= h.flight:
		h.flight, h.took, h.at = l.working, l.at-h.at, l.at
	}
}

// fades reports whether a drain takes as long for the next half as it took for the last one. A queue takes half of that, so the rest is in
// service. It asks only in a first probe of one key, which takes one round: queues of several keys do not end together. Few requests may
// end late by chance; and it asks when one ends: while the backend stands still, a drain does not fade.
func (l *limit) fades() bool {
	h := &l.half
	return l.before.calls == round && h.flight >= round && h.took > 0 && l.at-h.at > h.took
}

// measure begins the round of a probe. What was served in the drain is the throughput with all in
// service at work, which the round with the evidence need not show. It was in service within the drain, or for
// the base latency before. What is left after the drain stays in flight.
func (l *limit) measure() {
	l.drain.served, l.drain.took = float64(l.served), inSeconds(l.at-l.begin)+l.base
	if !l.before.limiting || !l.blind() {
		l.rate = max(l.rate, l.drain.served/l.drain.took)
	}
	l.state, l.window = Probing, max(l.window, float64(l.working))
	l.restart()
}

// whileProbing takes in that a request has ended in the round of a probe.
func (l *limit) whileProbing() {
	switch turn := l.fresh >= max(stride, int(l.window)); {
	case !l.whole():
	case l.searches(turn):
		if turn {
			l.seek()
		}
	case l.enough() || l.fellShort():
		l.conclude()
	}
}

// enough reports whether a probe has its answers, or four times as many requests ended.
func (l *limit) enough() bool {
	return max(float64(l.served), float64(l.ended)/turns) >= l.probeCalls()
}

// expire ends a probe that takes too long: what is left after twice the time in which a queue drains does not wait in that queue.
func (l *limit) expire() {
	took := inSeconds(l.at-l.begin) * l.before.rate / doubled
	switch {
	case l.state == Draining && took > l.before.flight:
		l.measure()
	case l.state == Probing && took > max(l.before.flight, l.probeCalls()):
		l.conclude()
	}
}

// probeCalls is how many answers a probe takes. A first probe is short: new requests wait for
// it. Requests that began together end together, so that a part of a turn, in which as many end as
// are in flight, may have all of them or none. It counts for little after two turns.
func (l *limit) probeCalls() float64 {
	calls, turn := l.before.calls, math.Ceil(l.window)
	if 2*turn <= calls {
		return calls
	}
	return turn * math.Ceil(calls/turn)
}

// fellShort reports whether a turn of a first probe has ended, and so slowly that the rest of the
// probe tells nothing more.
func (l *limit) fellShort() bool {
	expected := l.before.rate * inSeconds(l.at-l.begin)
	return !l.before.limiting && float64(l.ended) >= l.window && expected > round && float64(l.served) < expected*math.Sqrt(l.window/l.before.flight)
}

// conclude ends a probe. If throughput fell with what was in flight, that was at work. If a
// first probe kept the throughput, fewer may do: the next probe tries fewer. With fewer in flight throughput does not
// grow: where it seems to, by chance or after a stall, it was that of the probe and the drain before it together.
func (l *limit) conclude() {
	flight, rate := l.measured()
	queue := l.confirmed(flight/rate) || l.bounded && l.served > 0
	both := (l.drain.served + float64(l.served)) / (l.drain.took + inSeconds(l.at-l.begin))
	if !l.search {
		rate = min(rate, max(l.rate, both))
	}
	again := l.blind()
	switch {
	case l.before.limiting && (again || l.ended < round): // it tells nothing
		rate = l.rate
	case l.worked > 0 && flight > 0: // how long failures take is no latency
		again = !l.learnBase(flight/rate) || again
	}
	missing := max(0, 1-float64(l.ended)/l.probeCalls()) // fewer requests count for less time
	if again {
		missing = 1
	}
	l.probed = l.at - seconds(memory.Seconds()*missing)
	l.passed, l.turned = 0, 0
	l.latency.reset(l.at, l.base)
	if !queue && !l.before.limiting {
		l.clear()
		return
	}
	full := rate > (1+lean)/2*l.rate
	l.rate = max(l.rate, rate)
	l.bdp, l.lately = l.rate*l.base, l.rate
	if full && !l.before.limiting && l.window > 1 && l.at-l.begin < lasting {
		l.empty(min(lean*flight, math.Ceil(l.window)-1))
		return
	}
	l.startup = l.search
	l.state, l.roundTime = Limiting, inSeconds(l.at-l.begin)
	l.resize()
}

// learnBase takes in the latency of a probe, and reports whether it counts. With fewer in flight latency does not grow: where it
// seems to, the backend stood still meanwhile. For that reason, too, a probe that took a third longer than the last one counts only if
// the next one, which follows at once, takes as long.
func (l *limit) learnBase(took float64) bool {
	last := took
	if l.before.limiting {
		took, last = min(took, l.before.flight/l.before.rate), l.last
	}
	l.base, l.last = took, took
	if lean*took > last {
		l.base = last
		return false
	}
	return true
}
