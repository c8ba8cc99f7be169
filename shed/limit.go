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
	inflated  = 3.0  // times the usual latency: the sign of a queue
	usual     = 1.6  // times the least median: there is no queue to speak of
	rounds    = 32   // that the mean latency remembers
	dissolved = 0.5  // of the latency before a probe: there was a queue
	shrunk    = 0.8  // the same, where there was no more of one than the limit allows
	scarce    = 0.75 // share of the processors' time: they are what is short
	brisk     = 1e-3 // seconds that a queue may take without being one

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
// two, R the mean latency of the last rounds without a queue: those of which the
// median is hardly above the least one of the last five to ten seconds.
//
// A low C is no sign of a low capacity, and a long latency none of a queue: the
// load may be light, or the work may have changed. So while there is no sign of a
// queue four products may be in flight, and always 16 for each processor. A sign
// is that these do not suffice, or that the mean and the median of latency are both
// three times as long as usual: work of which some is long moves the one, and work
// of two kinds the other. It counts while the processors are not busy: if they are,
// they are what is short, and the executor decides alone.
//
// Then one and a half products are allowed, and R is measured again: once the queue
// is gone, three quarters of a product are let in for two latencies, beside what
// takes long for reasons of its own, and R becomes the requests in flight over the
// throughput of that round. If it was too high, that costs no throughput and R
// falls. If R is about the latency that there was before, there is no queue but the
// work has become slower or more: the limit is loosened again, from the new R. It is
// also when it has held nobody back for a second. Otherwise the probe is repeated
// every five seconds, which costs a quarter of the capacity for some hundredths of
// that.
//
// R may be the latency of a queue all the same: one that nobody looked for while the
// processors were busy, or one of a cold start that did not go in time for a probe. So
// where R has grown in a busy time, or a probe had nearly as much in flight as there was
// before and so could not tell, R is in doubt. While more is in flight than always may
// be, and even the quickest take about that long, it is then measured again with half a
// product, until such a probe could have found a queue and did not.
//
// Where more than a third of a round are requests whose clients have left after a long
// time, that is a sign as well, and R stays: what they have left behind may still be
// worked off elsewhere, and the more is let in, the more of it there is.
//
// Work of some microseconds is another matter: its latency is as much that of the
// schedulers on its way. What C does in a millisecond may always be in flight.
type limit struct {
	flight flight
	first  time.Time     // the first time ever seen; all others count from it
	at     time.Duration // the latest one
	now    time.Time     // the last one told, as it was

	// The round.
	begin time.Duration
	calls int     // completions
	spent float64 // seconds that these took
	half  median  // the time that half of them took at most
	area  float64 // seconds · requests in flight
	late  int     // whose clients have left, after a long time

	rate    extreme // C per second
	medians extreme // the least one, in seconds
	mean    average // R in seconds
	recent  float64 // mean latency of the last round

	busy   bool          // the processors are
	always float64       // so many may be in flight, whatever there is a sign of
	trusty float64       // R as it was known when there was no doubt, 0 if there always was
	doubt  bool          // R may be that of a queue
	bound  bool          // a sign of a queue was seen
	held   time.Duration // when the limit last held somebody back
	stuck  int           // rounds in a row in which it did
	phase  phase
	before float64       // in flight before the probe
	queued float64       // seconds that these took
	share  float64       // dissolved or shrunk
	stays  int           // in flight all through the probe
	drain  time.Duration // how long it waits for the queue to go
	probed time.Duration // when the last probe ended
	pause  time.Duration // until the next one
}

func newLimit() limit {
	return limit{
		rate:    extreme{memory: rateMemory},
		medians: extreme{least: true, memory: latencyMemory},
	}
}

// An average is that of the last rounds.
type average struct {
	value float64
	n     float64
}

func (a *average) put(v float64) {
	a.n = min(a.n+1, rounds)
	a.value += (v - a.value) / a.n
}

func (a *average) reset(v float64) { a.value, a.n = v, 1 }

type phase uint8

const (
	steady    phase = iota
	draining        // until no more is in flight than a probe allows
	measuring       // a round of a probe
)

// product returns C·R in requests, or 0 while it is not known.
func (l *limit) product() float64 { return l.rate.value() * l.mean.value }

// most returns how many requests may be in flight.
func (l *limit) most(processors int) float64 {
	return max(l.rule(float64(processors)), brisk*l.rate.value())
}

func (l *limit) rule(p float64) float64 {
	product := l.product()
	switch {
	case product == 0:
		return unknown * p
	case l.phase != steady:
		return max(1, l.lean()*product) + float64(l.stays)
	case l.bound:
		return float64(tight*product) + p
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
	l.always = unknown * float64(state.processors())
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

// probe tightens the limit and begins to measure R. There was a queue if no more than
// a share of the latency is left. What is still in flight after twice the time in which
// all of it could be worked off takes long for reasons of its own.
func (l *limit) probe(share float64) {
	l.before = l.area / (l.at - l.begin).Seconds()
	l.share, l.stays = share, 0
	l.drain = min(drainMax, time.Duration(2*float64(l.flight.moving())/l.rate.value()*float64(time.Second)))
	l.bound, l.held, l.phase, l.stuck = true, l.at, draining, 0
}

// turn begins the round of a probe once the queue is gone, or does not go, and
// gives up one in which nothing ends.
func (l *limit) turn() {
	took := l.at - l.begin
	switch {
	case l.phase == draining && float64(l.flight.moving()) <= l.lean()*l.product():
		l.measure()
	case l.phase == draining && took > l.drain:
		l.stays = l.flight.moving()
		l.measure()
	case l.phase == measuring && took > roundMax && l.calls < fewCalls:
		l.phase, l.probed = steady, l.at
	}
}

// measure begins the round of a probe.
func (l *limit) measure() {
	l.phase, l.queued = measuring, l.spent/max(1, float64(l.calls))
	l.round()
}

func (l *limit) enter(now time.Time) (began time.Duration) {
	l.advance(now)
	l.flight.enter()
	return l.at
}

// leave takes a request out of flight. One whose client has not waited for the end says
// nothing of how long the work takes, unless it left early.
func (l *limit) leave(now time.Time, began time.Duration, done bool) {
	l.advance(now)
	l.flight.leave(began)
	if took := l.at - began; done || took.Seconds() <= inflated*l.mean.value {
		l.calls++
		l.spent += min(took, longest).Seconds()
		l.half.add(took)
	} else {
		l.late++
		l.area -= min(took, l.at-l.begin).Seconds()
	}
	l.turn()
	if l.complete() {
		l.learn()
		l.round()
	}
}

// suspend takes a request out of flight while it waits for its client, and returns how
// long it has worked.
func (l *limit) suspend(now time.Time, began time.Duration) (worked time.Duration) {
	l.advance(now)
	l.flight.leave(began)
	return l.at - began
}

// resume takes it back into flight, as if it had begun when it would have without the
// pause.
func (l *limit) resume(now time.Time, worked time.Duration) (began time.Duration) {
	l.advance(now)
	l.flight.enter()
	return l.at
}

func (l *limit) advance(now time.Time) {
	if l.first.IsZero() {
		l.first = now
	}
	if now == l.now {
		return
	}
	l.now = now
	at := now.Sub(l.first)
	if at <= l.at {
		return
	}
	l.area += float64(float64(l.flight.moving()) * (at - l.at).Seconds())
	l.at = at
	l.flight.turn(at, l.mean.value)
}

func (l *limit) round() {
	l.begin, l.area, l.calls, l.spent, l.half, l.late = l.at, 0, 0, 0, median{}, 0
}

// overdue reports whether too many clients left for the round to be believed: what they
// have left may still be worked off, and all others wait for it.
func (l *limit) overdue() bool { return 2*l.late > l.calls }

// complete reports whether the round is long enough to tell something.
func (l *limit) complete() bool {
	length := l.at - l.begin
	switch {
	case l.calls+l.late < fewCalls || l.phase == draining || length < roundTime/4:
		return false
	case l.phase == measuring || l.product() == 0:
		return length.Seconds() >= 2*l.mean.value
	default:
		return length >= roundTime && l.calls+l.late >= roundCalls || length >= roundMax
	}
}

// learn takes in a round, and decides whether to probe.
func (l *limit) learn() {
	length := (l.at - l.begin).Seconds()
	calls := max(0.5, float64(l.calls)) // none is something, too
	latency, half := l.spent/calls, l.half.seconds()
	l.rate.put(l.at, calls/length)
	if l.phase == measuring {
		l.conclude(l.area/calls, l.area/length)
		return
	}
	l.recent = latency
	if !l.bound && !l.overdue() {
		l.medians.put(l.at, half)
		if half <= usual*l.medians.value() {
			l.mean.put(latency)
		}
	}
	l.question()
	l.stuck++
	if l.held < l.begin {
		l.stuck = 0
	}
	since := l.at - l.probed
	queue := half > max(brisk, inflated*l.medians.value()) && latency > inflated*l.mean.value && l.area > l.product()*length
	switch {
	case l.busy:
	case (queue || l.overdue()) && since >= probeAgain:
		l.probe(dissolved)
	case !l.bound && l.stuck >= 2, l.bound && l.stuck > 0 && since >= l.pause:
		l.probe(shrunk)
	case l.doubt && l.area > l.always*length && inflated*l.half.quick() > latency && since >= max(probeAgain, l.relief()):
		l.pause = probeAgain
		l.probe(shrunk)
	case l.at-l.held >= release:
		l.bound = false
	}
}

// relief is how long nobody is disturbed after a probe for doubt, which takes two latencies.
func (l *limit) relief() time.Duration {
	return time.Duration(4 * l.mean.value * float64(time.Second))
}

// question takes note of whether R is to be doubted. Of what was known it forgets slowly
// what was long: a single probe may find little.
func (l *limit) question() {
	if l.busy || l.doubt {
		l.doubt = l.mean.value > usual*l.trusty
	} else {
		l.trusty = max(l.mean.value, l.trusty+float64((l.mean.value-l.trusty)/rounds))
	}
}

// conclude ends a probe, which found this latency and as much in flight, unless clients
// left. If it is hardly less than with more in flight, there was no queue.
func (l *limit) conclude(latency, flight float64) {
	l.phase, l.probed = steady, l.at
	if l.overdue() {
		l.bound, l.pause = true, probeAgain
		return
	}
	l.bound = latency < l.share*l.queued
	l.pause = probeEvery
	if math.Abs(latency-l.mean.value) > settled*latency {
		l.pause = probeAgain
	}
	l.medians.reset(l.at, l.half.seconds())
	switch {
	case l.bound:
	case flight > l.share*l.before: // a queue would have stayed as long
		l.trusty, l.doubt = 0, true
	default:
		l.trusty, l.doubt = max(l.mean.value, latency), false
	}
	l.mean.reset(latency)
}
