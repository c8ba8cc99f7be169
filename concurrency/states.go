package concurrency

import (
	"math"
	"time"
)

// watch reports whether there is evidence of a queue.
func (l *limit) watch(stall float64) bool {
	flight, rate := l.saturated()
	switch {
	case l.evidence(rate, stall) && !l.wasClear(flight) && l.pays():
		return true
	case l.ended >= max(2*round, int(turns*flight)):
		l.rate = rate
		l.latency.round(l.at)
		l.restart()
		if l.shared {
			l.generation++
		}
	}
	return false
}

// saturated returns the mean in flight of the round, and the throughput while there was something to do.
func (l *limit) saturated() (flight, rate float64) {
	flight, rate = l.measured()
	if busy := l.loaded / max(l.area-l.beginArea, 1e-9); rate < lean*busy {
		rate = busy // the round began in a quiet time, whose throughput is not what can be done
	}
	return flight, rate
}

// suspect begins a first probe.
func (l *limit) suspect() {
	_, rate := l.saturated()
	l.base, l.rate = l.latency.least(), rate
	l.probe(float64(l.working), l.rate, l.rate*l.base)
}

// wasClear reports whether about as many in flight were found to be no queue.
func (l *limit) wasClear(flight float64) bool {
	return l.at-l.clearAt < memory && flight < doubled*l.cleared
}

// probe lets nothing start until no more than window is left. Before, so many were in flight, and so many per second were
// answered and not quick. No more than window are left that the limit after the probe is answered in half of the time to the deadlines.
func (l *limit) probe(flight, rate, window float64) {
	l.before.limiting, l.before.flight, l.before.rate = l.state == Limiting, flight, rate
	l.before.calls = round
	if l.before.limiting {
		l.before.calls = 2 * round
	} else {
		l.cohort.to, l.cohort.flight = l.at, float64(l.working)
	}
	if l.rest > 0 {
		window = min(window, rate*l.rest/(doubled*gain))
	}
	l.empty(window)
}

// empty begins a drain.
func (l *limit) empty(window float64) {
	l.state, l.window = Draining, max(1, window)
	l.half.flight, l.half.took, l.half.at = l.working, 0, l.at
	l.restart()
}

// halve notes when what is in flight has halved.
func (l *limit) halve() {
	if h := &l.half; 2*l.working <= h.flight {
		h.flight, h.took, h.at = l.working, l.at-h.at, l.at
	}
}

// fades reports whether a drain takes as long for the next half as it took for the last one. A queue takes half of that, so the rest is in
// service. It asks only in a first probe of one key, which takes one round: queues of several keys do not end together. Few requests may
// end late by chance.
func (l *limit) fades() bool {
	h := &l.half
	return l.before.calls == round && h.flight >= round && h.took > 0 && l.at-h.at > h.took
}

// fellShort reports whether a turn of a first probe has ended, and so slowly that the rest of the
// probe tells nothing more.
func (l *limit) fellShort() bool {
	expected := l.before.rate * inSeconds(l.at-l.begin)
	return !l.before.limiting && float64(l.ended) >= l.window && expected > round && float64(l.served) < expected*math.Sqrt(l.window/l.before.flight)
}

// measure begins the round of a probe. What was served in the drain is the throughput with all in
// service at work, which the round with the evidence need not show. It was in service within the drain, or for
// the base latency before.
func (l *limit) measure() {
	l.drain.served, l.drain.took = float64(l.served), inSeconds(l.at-l.begin)+l.base
	l.rate = max(l.rate, l.drain.served/l.drain.took)
	l.state = Probing
	l.restart()
}

// probeCalls is how many completions a probe takes. A first probe is short: new requests wait for
// it. Requests that began together end together, so that a part of a turn, in which as many end as
// are in flight, may have all of them or none. It counts for little after two turns.
func (l *limit) probeCalls() float64 {
	calls, turn := l.before.calls, math.Ceil(l.window)
	if 2*turn <= calls {
		return calls
	}
	return turn * math.Ceil(calls/turn)
}

// conclude ends a probe. If throughput fell with what was in flight, that was at work. If a
// first probe kept the throughput, fewer may do: the next probe tries fewer. With fewer in flight throughput does not
// grow: where it seems to, by chance or after a stall, it was that of the probe and the drain before it together.
func (l *limit) conclude() {
	flight, rate := l.measured()
	queue := l.confirmed(flight / rate)
	both := (l.drain.served + float64(l.served)) / (l.drain.took + inSeconds(l.at-l.begin))
	rate = min(rate, max(l.rate, both))
	if l.worked > 0 && flight > 0 { // otherwise it is what it was: how long failures take is no latency
		l.base = flight / rate
	}
	missing := max(0, 1-float64(l.ended)/l.probeCalls())
	l.probed = l.at - seconds(memory.Seconds()*missing) // fewer requests count for less time
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
	l.state, l.roundTime = Limiting, inSeconds(l.at-l.begin)
	l.resize()
}

// narrow goes on with a first probe with a part of the requests.
func (l *limit) narrow(part float64) {
	l.rate *= part
	l.before.flight *= part
	l.before.rate *= part
	l.empty(l.rate * l.base)
}

func (l *limit) clear() {
	l.cleared, l.clearAt = l.before.flight, l.at
	l.open()
}

func (l *limit) open() {
	l.state, l.window = Open, math.Inf(1)
	l.restart()
}

// resize sets the limit by the bandwidth-delay product.
func (l *limit) resize() {
	l.window = float64(gain*l.rate*l.base) + float64(l.rate*brief.Seconds()) + 1
	l.restart()
}

// follow takes the throughput of a round in which requests waited: for the limit, or for one another, if the
// caller holds back others before the limit does. If that of all keys halves for a second, other requests
// than the ones that waited have the places: the keys do not wait for the same thing.
func (l *limit) follow(alone bool) {
	flight, rate := l.measured()
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
	return l.state == Limiting && l.working == 0 && l.at-max(l.held, l.starved) > memory
}

// idle takes in a request that ended while there was not enough to do. Many of them, which waited
// for nothing, are a probe if their latency is that of the last one.
func (l *limit) idle() {
	switch {
	case l.at-max(l.held, l.starved) > memory:
		l.open()
	case l.ended >= round:
		flight, rate := l.measured()
		if now := flight / rate; lean*now < l.base && now > lean*l.base {
			l.probed, l.passed, l.turned = l.at, 0, 0
		}
		l.restart()
	}
}

func (l *limit) restart() {
	l.counts = counts{begin: l.at, beginArea: l.area, were: l.working}
	if l.state == Open {
		l.cohort = cohort{from: l.at, to: math.MaxInt64}
	}
}

// measured returns the mean in flight and the throughput of the round. What was abandoned is no throughput: clients that leave
// a queue would count as if they had been served.
func (l *limit) measured() (flight, rate float64) {
	took := max(inSeconds(l.at-l.begin), 1e-9)
	return (l.area - l.beginArea) / took, max(0.5, float64(l.served)) / took
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// inSeconds is Duration.Seconds without its integer divisions, which cost more than the
// rest of a request.
func inSeconds(d time.Duration) float64 { return float64(float64(d) * 1e-9) }
