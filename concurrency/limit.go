package concurrency

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

// The constants of the rule. go run ./benchmarks/concurrency -ablate says what happens at half and at double of each.
const (
	round   = 32                   // completions that a measurement takes; evidence may take half
	certain = 5.0                  // standard errors: one false alarm in some million rounds
	elastic = 0.4                  // least elasticity of latency: between no queue, which has 0, and only a queue, which has 1
	turns   = 4.0                  // times what is in flight, after which evidence is collected afresh; and rounds in the mean throughput
	doubled = 2.0                  // or half: a latency or a number in flight that differs by less is as expected
	gain    = 1.5                  // BDPs that a limit allows
	lean    = 0.75                 // BDPs that a probe of a limit allows
	brief   = 5 * time.Millisecond // a wait that does not matter
	memory  = 10 * time.Second     // how long a base latency and a verdict count
)

// What follows from them.
const (
	sudden   = doubled     // elasticity from which latency jumps: a queue alone has 1
	parkTime = 2 * turns   // usual latencies, after which a request is parked
	stride   = round / 8   // completions from one look for evidence to the next: each look is a chance of a false alarm
	group    = round / 4   // completions of all keys; only the quickest of them counts: a queue delays that one, too
	lasting  = memory / 10 // a request is not parked before, a drain stops everything for so long, and a first probe that takes longer is not repeated
)

// State is what is known of a key.
type State uint8

// The states, in the order in which a key passes through them.
const (
	// Open: no queue was found. There is no limit but the operator's.
	Open State = iota
	// Draining: there is evidence of a queue. Nothing starts until it is gone.
	Draining
	// Probing: only what should be in service is let in, and latency is measured.
	Probing
	// Limiting: a queue was found. The limit follows the throughput.
	Limiting
)

var stateNames = [...]string{"open", "draining", "probing", "limiting", "invalid"}

// String returns a lower-case word for s.
func (s State) String() string { return stateNames[min(int(s), len(stateNames)-1)] }

// limit is the rule for one key, in seconds and on the clock of its [Limiter].
type limit struct {
	meter     // what is in flight, and what ends
	evidence  // what latencies show
	trial     // the last one
	slow      slowStart
	heard     time.Duration // when a request was last answered
	heardArea float64       // area then

	state   State
	window  float64       // so many may be working
	rate    float64       // throughput while saturated, per second
	base    float64       // latency without a queue
	quiet   bool          // while Limiting, fewer are in flight than a trial allows
	held    time.Duration // when a request last found no place
	stood   time.Duration // when the clock last stood still
	sound   time.Duration // when a round without that last ended
	probed  time.Duration // when the last probe ended
	cleared float64       // so many in flight were found to be no queue,
	clearAt time.Duration // then

	abandoned float64 // share of the requests that ended
	rest      float64 // mean time to the deadline when a request starts; 0: none was sent
	urgent    float64 // the same of the most urgent requests: it falls a round times as fast as it rises
}

func newLimit(at time.Duration, shared bool) *limit {
	l := &limit{window: math.Inf(1), held: at - memory, probed: at - memory, clearAt: at - memory, stood: at - memory, sound: at - memory}
	l.at, l.shared, l.slow.most = at, shared, math.Inf(1)
	l.restart()
	return l
}

// free reports whether one more may start.
func (l *limit) free(bounds *Config) bool {
	if working := float64(l.working); working < min(l.window, l.slow.most) || working < float64(bounds.Min) {
		return true // the same as working < limit, without its cases for NaN
	}
	l.held = l.at
	return false
}

// limit is how many may be working.
func (l *limit) limit(bounds *Config) float64 {
	return min(max(min(l.window, l.slow.most), float64(bounds.Min)), bounds.most())
}

// hear takes in whether a request that ends was answered in time, and how many seconds it waited. Who leaves before its deadline, and
// sooner than an answer takes, says nothing.
func (l *limit) hear(answer bool, waited, rest float64) {
	if answer {
		if l.state == Open && l.stoodStill() {
			l.restart()
		}
		l.heard, l.heardArea = l.at, l.area
		l.slow.answered(l.at, l.held)
	} else if l.state != Draining && waited >= min(l.latency.least(), rest) && l.slow.silent(l.at, l.working) {
		l.latency = latency{}
		l.restart()
	}
}

// memory returns how long a base latency and a verdict count: longer where requests take seconds.
func (l *limit) memory() time.Duration { return max(memory, seconds(2*parkTime*l.latency.mean)) }

// stoodStill reports whether the backend did until now: two usual latencies passed without an answer, and a round of answers was due by
// Little's law. What was in flight waited for that, and not for one another.
func (l *limit) stoodStill() bool {
	return l.latency.n >= round/2 && inSeconds(l.at-l.heard) > doubled*l.latency.mean && l.area-l.heardArea > round*l.latency.mean
}

// start takes in how many seconds a request that starts has until its deadline. One whose deadline has passed says nothing.
func (l *limit) start(rest float64) {
	switch {
	case rest <= 0 || math.IsInf(rest, 1):
	case l.rest == 0:
		l.rest, l.urgent = rest, rest
	default:
		l.rest += float64((rest - l.rest) / round)
		l.urgent += float64(min(rest-l.urgent, (rest-l.urgent)*round) / (round * round))
	}
}

// An ending is what is known of a request that ends.
type ending struct {
	outcome spillway.Outcome
	began   time.Duration
	stood   time.Duration // when the clock last stood still
	stall   float64       // for how many seconds at most, if within the last second
}

// leave takes in a request that ends, and found so many in flight. Where it was abandoned, what it took says nothing.
func (l *limit) leave(e *ending, found int) {
	l.stood = e.stood
	l.end(e.outcome)
	took := inSeconds(l.at - e.began)
	l.abandoned = elapsed.Trim(l.abandoned - float64(l.abandoned/round))
	switch {
	case e.outcome == spillway.OutcomeAbandoned:
		l.abandoned += 1.0 / round
		return
	case e.outcome != spillway.OutcomeServed && took < l.latency.mean:
		return // a failure that came sooner than usual says nothing: the work was not done
	}
	l.latency.add(l.at, took, e.stall)
	l.cohort.see(e.began, float64(found), took)
	l.learn(took, float64(found), float64(l.working), e.began >= l.begin)
}

// advance counts time.
func (l *limit) advance(at time.Duration) {
	if at <= l.at {
		return
	}
	if l.pass(at); l.state == Draining || l.state == Probing {
		l.expire()
	}
}

func (l *limit) parkAfter() time.Duration {
	switch {
	case l.latency.n >= round/2:
		return max(lasting, seconds(parkTime*l.latency.mean))
	case l.slow.bounds() || l.working < round/2:
		return memory
	}
	return parkTime * memory // nothing is known of the usual latency
}

// decide takes the action of the current state after a request has ended. A stall of this
// process, in seconds, explains a wait of the same length, and saturated processors explain
// any wait. It reports whether there is evidence of a queue.
func (l *limit) decide(stall float64, busy bool) (evidence bool) {
	if l.slow.unknown() {
		return false
	}
	switch l.state {
	case Open:
		return l.ended >= l.looked+stride && l.whileOpen(stall, busy)
	case Draining:
		l.whileDraining()
	case Probing:
		l.whileProbing()
	case Limiting:
		l.whileLimiting()
	}
	return false
}
