package concurrency

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

// The constants of the rule. go run ./benchmarks/concurrency -ablate shows the effect of half and
// twice each value.
const (
	round = 32 // requests that end in a round; half of a round may be enough for evidence
	// certain is the least slope that is evidence, in standard errors: one false alarm in millions
	// of rounds.
	certain = 5.0
	// elastic is the least elasticity that is evidence. Elasticity is by how many per cent latency
	// grows if 1 % more requests are in flight: 0 where they do not wait for one another, and 1 where
	// they do nothing else.
	elastic = 0.4
	// turns is a factor in several bounds of times and counts. While Open, a round lasts until at
	// least turns times as many requests have ended as are in flight. The mean throughput covers that
	// many rounds.
	turns = 4.0
	// doubled is the ratio of two latencies, or of two numbers in flight, that counts as a change.
	doubled = 2.0
	gain    = 1.5                  // BDPs that a limit allows
	lean    = 0.75                 // BDPs that a trial leaves in flight while Limiting
	brief   = 5 * time.Millisecond // a wait that is too short to matter
	memory  = 10 * time.Second     // how long a base latency and a verdict are valid
)

// These values follow from the constants above.
const (
	sudden   = doubled   // elasticity from which on latency grows faster than in a queue
	parkTime = 2 * turns // usual latencies after which a request is parked
	// stride is how many requests end between two searches for evidence. Each search may be a false
	// alarm, so there are not more of them.
	stride = round / 8
	// group is the number of requests in a group. The limit of all keys uses only the quickest request
	// of each group, because a queue in front of all keys delays even that one.
	group = round / 4
	// lasting is the least age of a parked request, and how long a drain stops everything. A first
	// probe that takes longer is not repeated.
	lasting = memory / 10
)

// State is the state of the limit of a key.
type State uint8

// These are the states, in the order in which a limit passes through them.
const (
	// Open: no queue was found. Only the operator's limits, MaxInFlight and MaxInFlightByKey, hold.
	Open State = iota
	// Draining: a trial has begun. No request starts until about one BDP is in flight.
	Draining
	// Probing: the second part of a trial. About one BDP stays in flight, and latency is measured.
	Probing
	// Limiting: a queue was found. The limit follows the throughput.
	Limiting
)

var stateNames = [...]string{"open", "draining", "probing", "limiting", "invalid"}

// String returns the name of s in lower case.
func (s State) String() string { return stateNames[min(int(s), len(stateNames)-1)] }

// limit is the learnt limit of one key, or of all keys. Times are on the clock of its [Limiter].
type limit struct {
	meter     // requests in flight, and requests that ended in this round
	evidence  // what the latencies show
	trial     // the current trial, or the last one
	slow      slowStart
	heard     time.Duration // when a request was last answered
	heardArea float64       // value of area at that time

	state  State
	window float64       // number of requests that may be working; +Inf while Open
	rate   float64       // throughput while saturated, in answers per second
	base   float64       // latency without a queue, in seconds
	quiet  bool          // while Limiting, fewer requests are working than a trial would leave
	held   time.Duration // when the limit last held back a request
	stood  time.Duration // when the clock last stood still
	sound  time.Duration // when the last round ended in which the clock ran all the time
	probed time.Duration // when the last probe ended
	// settles is the time before which latency.settle must not be called: a queue was seen recently,
	// and the deadlines of callers left time for it.
	settles time.Duration
	cleared float64       // requests in flight before the last trial that found no queue
	clearAt time.Duration // when that trial ended

	abandoned float64 // share of the last 32 requests or so that their clients abandoned, 0 to 1
	rest      float64 // mean seconds from start to deadline (EWMA); 0: no deadline was sent
	// urgent is rest for the most urgent requests: it falls 32 times as fast as it rises.
	urgent float64
}

func newLimit(at time.Duration, shared bool) *limit {
	l := &limit{window: math.Inf(1), held: at - memory, probed: at - memory, clearAt: at - memory, stood: at - memory, sound: at - memory}
	l.at, l.shared, l.slow.most = at, shared, math.Inf(1)
	l.restart()
	return l
}

// free reports whether one more request may start. If not, it notes that a request was held back.
func (l *limit) free(bounds *Config) bool {
	if working := float64(l.working); working < min(l.window, l.slow.most) || working < float64(bounds.MinInFlight) {
		return true // the same as working < the larger of both, without the tests of max for NaN
	}
	l.held = l.at
	return false
}

// limit returns the highest number of requests that may be working.
func (l *limit) limit(bounds *Config) float64 {
	return min(max(min(l.window, l.slow.most), float64(bounds.MinInFlight)), bounds.most())
}

// hear records whether a request was answered in time. waited is for how many seconds it was at
// work, and rest how many seconds it had until its deadline when it began. A client that leaves
// before the deadline of its request, and sooner than answers take, is no evidence.
func (l *limit) hear(answer bool, waited, rest float64) {
	if answer {
		if l.state == Open && l.stoodStill() {
			l.restart()
		}
		l.heard, l.heardArea = l.at, l.area
		l.slow.answered(l.at, l.held)
		return
	}
	if l.state == Draining || waited < min(l.latency.least(), rest) {
		return
	}
	if l.state == Probing && inSeconds(l.at-l.probe) >= waited {
		l.lost++
	}
	if l.slow.silent(l.at, l.working) {
		l.latency = latency{}
		l.restart()
	}
}

// memory returns how long a base latency and a verdict are valid: ten seconds, or 16 usual
// latencies if that is longer.
func (l *limit) memory() time.Duration { return max(memory, seconds(2*parkTime*l.latency.mean)) }

// stoodStill reports whether the backend stood still until now: no answer came for two usual
// latencies, and by Little's law 32 answers were due in that time. The requests in flight then
// waited for the backend, and not for one another.
func (l *limit) stoodStill() bool {
	return l.latency.n >= round/2 && inSeconds(l.at-l.heard) > doubled*l.latency.mean && l.area-l.heardArea > round*l.latency.mean
}

// start records the seconds from the start of a request to its deadline. It ignores requests
// without a deadline, and those whose deadline has passed.
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
	stall   float64       // longest recent stall in seconds; 0 if none ended in the last second
}

// leave records a request that ends. found is the number of requests that were working when it
// began. The latency of an abandoned request is no evidence.
func (l *limit) leave(e *ending, found int) {
	l.stood = e.stood
	l.end(e.outcome, e.began)
	took := inSeconds(l.at - e.began)
	l.abandoned = elapsed.Trim(l.abandoned - float64(l.abandoned/round))
	switch {
	case e.outcome == spillway.OutcomeAbandoned:
		l.abandoned += 1.0 / round
		return
	case e.outcome != spillway.OutcomeServed && took < l.latency.mean:
		return // the latency of a quick failure is no evidence: the work was not done
	}
	l.latency.add(l.at, took, e.stall)
	l.cohort.see(e.began, float64(found), took)
	l.learn(took, float64(found), float64(l.working), e.began >= l.begin)
}

// advance moves the limit to a time, and ends a part of a trial that takes too long.
func (l *limit) advance(at time.Duration) {
	if at <= l.at {
		return
	}
	if l.pass(at); l.state == Draining || l.state == Probing {
		l.expire()
	}
}

// parkAfter returns the age after which a request may be parked.
func (l *limit) parkAfter() time.Duration {
	switch {
	case l.latency.n >= round/2:
		return max(lasting, seconds(parkTime*l.latency.mean))
	case l.slow.bounds() || l.working < round/2:
		return memory
	}
	return parkTime * memory // the usual latency is unknown
}

// decide takes the action of the current state after a request has ended, and reports whether there
// is evidence of a queue. stall is the longest recent stall of this process in seconds, which
// explains a wait of the same length. busy means that processors are saturated, which explains any
// wait.
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
