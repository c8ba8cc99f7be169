package shed

import (
	"math"
	"time"
)

const (
	unknown   = 16.0 // in flight per processor while nothing is known
	loose     = 4.0  // products in flight while there is no sign of a queue
	tight     = 1.5  // products in flight once there is one
	lean      = 0.75 // products in flight during a probe
	leaner    = 0.5  // if the one before it found something new
	inflated  = 3.0  // times the least latency: the sign of a queue
	queueless = 0.8  // of the latency before a probe: there was no queue
	scarce    = 0.75 // share of the processors' time: they are what is short

	roundTime  = 100 * time.Millisecond // a round lasts this long
	roundCalls = 50                     // and has as many completions,
	roundMax   = time.Second            // or lasts this long
	fewCalls   = 8                      // and has these few

	rateMemory    = time.Second
	latencyMemory = 5 * time.Second
	drainMax      = 200 * time.Millisecond
	probeEvery    = 5 * time.Second
	probeAgain    = 500 * time.Millisecond // if the last one found something new:
	settled       = 0.1                    // a latency that differs by more than this
	release       = time.Second            // without holding anybody back
)

// limit bounds the requests in flight, for work that waits on something else
// than a processor: a pool of connections, a backend, a lock.
//
// Its unit is the product of the throughput C that the work reaches and of the
// latency R that it has without a queue: C·R requests in flight are enough for C
// (Little's law), and all above that wait for one another. Both are measured in
// rounds of some completions. C is the greatest throughput of the last second or
// two, R the least mean latency of the last five to ten.
//
// A low C is no sign of a low capacity, and a long latency none of a queue: the
// load may be light, or the work may have changed. So while there is no sign of a
// queue four products may be in flight, and always 16 for each processor. A sign
// is that these do not suffice, or that latency is three times R, while the
// processors are not busy: if they are, they are what is short, and the executor
// decides alone. Then one and a half products are allowed, and R is measured
// again: once the queue is gone, three quarters of a product are let in for two
// latencies, and R becomes the requests in flight over the throughput of that
// round. If it was too high, that costs no throughput and R falls. If R is about
// the latency that there was before, there is no queue but the work has become
// slower or more: the limit is loosened again, from the new R. It is also when it
// has held nobody back for a second. Otherwise the probe is repeated every five
// seconds, which costs a quarter of the capacity for some hundredths of that.
type limit struct {
	flight flight
	first  time.Time     // the first time ever seen; all others count from it
	at     time.Duration // the latest one

	// The round.
	begin time.Duration
	calls int     // completions
	spent float64 // seconds that these took
	area  float64 // seconds · requests in flight

	rate    extreme // C per second
	latency extreme // R in seconds
	recent  float64 // mean latency of the last round

	busy   bool          // the processors are
	bound  bool          // a sign of a queue was seen
	held   time.Duration // when the limit last held somebody back
	stuck  int           // rounds in a row in which it did
	phase  phase
	queued float64       // seconds that took what was in flight before the probe
	probed time.Duration // when the last probe ended
	pause  time.Duration // until the next one
}

func newLimit() limit {
	return limit{
		rate:    extreme{of: math.Max, memory: rateMemory},
		latency: extreme{of: math.Min, memory: latencyMemory},
	}
}

type phase uint8

const (
	steady    phase = iota
	draining        // until no more is in flight than a probe allows
	measuring       // a round of a probe
)

// product returns C·R in requests, or 0 while it is not known.
func (l *limit) product() float64 { return l.rate.value() * l.latency.value() }

// most returns how many requests may be in flight.
func (l *limit) most(processors int) float64 {
	p, product := float64(processors), l.product()
	switch {
	case product == 0:
		return unknown * p
	case l.phase != steady:
		return max(1, l.lean()*product)
	case l.bound:
		return tight*product + p
	default:
		return max(unknown*p, loose*product)
	}
}

// lean returns how many products may be in flight during a probe.
func (l *limit) lean() float64 {
	if l.pause == probeAgain {
		return leaner
	}
	return lean
}

// free reports whether one more request may be in flight.
func (l *limit) free(now time.Time, state State) bool {
	l.advance(now)
	l.turn()
	if l.busy = state.CPU > scarce; l.busy {
		l.bound, l.phase = false, steady
	}
	if float64(l.flight.moving()) < l.most(state.processors()) {
		return true
	}
	l.held = l.at
	return false
}

// slack reports whether more could be in flight than is, by a good measure.
func (l *limit) slack() bool {
	return !l.bound || l.phase == steady && float64(l.flight.moving()) < (1+tight)/2*l.product()
}

// probe tightens the limit and begins to measure R.
func (l *limit) probe() {
	l.bound, l.held, l.phase, l.stuck = true, l.at, draining, 0
}

// turn begins the round of a probe once the queue is gone, or does not go, and
// gives up one in which nothing ends.
func (l *limit) turn() {
	took := l.at - l.begin
	switch {
	case l.phase == draining && (float64(l.flight.moving()) <= l.lean()*l.product() || took > drainMax):
		l.phase, l.queued = measuring, l.spent/max(1, float64(l.calls))
		l.round()
	case l.phase == measuring && took > roundMax && l.calls < fewCalls:
		l.phase, l.probed = steady, l.at
	}
}

func (l *limit) enter(now time.Time) (began time.Duration) {
	l.advance(now)
	l.flight.enter()
	return l.at
}

func (l *limit) leave(now time.Time, began time.Duration) {
	l.advance(now)
	l.flight.leave(began)
	l.calls++
	l.spent += min(l.at-began, longest).Seconds()
	l.turn()
	if l.complete() {
		l.learn()
		l.round()
	}
}

func (l *limit) advance(now time.Time) {
	if l.first.IsZero() {
		l.first = now
	}
	at := now.Sub(l.first)
	if at <= l.at {
		return
	}
	l.area += float64(l.flight.moving()) * (at - l.at).Seconds()
	l.at = at
	l.flight.turn(at, l.latency.value())
}

func (l *limit) round() { l.begin, l.area, l.calls, l.spent = l.at, 0, 0, 0 }

// complete reports whether the round is long enough to tell something.
func (l *limit) complete() bool {
	length := l.at - l.begin
	switch {
	case l.calls < fewCalls || l.phase == draining:
		return false
	case l.phase == measuring || l.product() == 0:
		return length.Seconds() >= 2*l.latency.value() && length >= roundTime/4
	default:
		return length >= roundTime && l.calls >= roundCalls || length >= roundMax
	}
}

// learn takes in a round, and decides whether to probe.
func (l *limit) learn() {
	length := (l.at - l.begin).Seconds()
	latency := l.spent / float64(l.calls)
	l.rate.put(l.at, float64(l.calls)/length)
	if l.phase == measuring {
		l.conclude(l.area / float64(l.calls))
		return
	}
	l.recent = latency
	if !l.bound {
		l.latency.put(l.at, latency)
	}
	l.stuck++
	if l.held < l.begin {
		l.stuck = 0
	}
	since := l.at - l.probed
	queue := latency > inflated*l.latency.value() && l.area > l.product()*length && since >= probeAgain
	switch {
	case l.busy:
	case queue, !l.bound && l.stuck >= 2, l.bound && l.stuck > 0 && since >= l.pause:
		l.probe()
	case l.at-l.held >= release:
		l.bound = false
	}
}

// conclude ends a probe, which found this latency. If it is hardly less than with
// more in flight, there was no queue.
func (l *limit) conclude(latency float64) {
	l.bound = latency < queueless*l.queued
	l.pause = probeEvery
	if math.Abs(latency-l.latency.value()) > settled*latency {
		l.pause = probeAgain
	}
	l.phase, l.probed = steady, l.at
	l.latency.reset(l.at, latency)
}
