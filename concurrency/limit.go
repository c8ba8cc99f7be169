package concurrency

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

// The constants of the rule. docs/concurrency.md says what happens at half and at
// double of each.
const (
	round    = 32                   // completions that a measurement takes; evidence may take half
	certain  = 5.0                  // standard errors: one false alarm in some million rounds
	distinct = 4.0                  // the same, between the slopes of two keys: one in 40 differs by half of it by chance
	elastic  = 0.4                  // least elasticity of latency: between no queue, which has 0, and only a queue, which has 1
	turns    = 4.0                  // times what is in flight, after which evidence is collected afresh; and rounds in the mean throughput
	doubled  = 2.0                  // or half: a latency, a throughput, a BDP or the time of a drain that differs by less is as expected
	gain     = 1.5                  // BDPs that a limit allows
	lean     = 0.75                 // BDPs that a probe of a limit allows
	brief    = 5 * time.Millisecond // a wait that does not matter
	memory   = 10 * time.Second     // how long a base latency and a verdict count
)

// What follows from them.
const (
	sudden   = doubled                 // elasticity from which latency jumps: a queue alone has 1
	parkTime = 2 * turns               // usual latencies, after which a request is parked
	several  = 1 / (doubled * doubled) // share of quick requests that matters; and its square, of what is between them and the others, that does not
	stride   = round / 8               // completions from one look for evidence to the next: each look is a chance of a false alarm
	group    = round / 4               // completions of all keys; only the quickest of them counts: a queue delays that one, too
	lasting  = memory / 10             // a request is not parked before; a first probe that takes longer is not repeated; less throughput for less may be chance
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

var stateNames = [...]string{"open", "draining", "probing", "limiting"}

// String returns a lower-case word for s.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return "invalid"
	}
	return stateNames[s]
}

// limit is the rule for one key, in seconds and on the clock of its [Limiter].
type limit struct {
	shared  bool          // by all keys: only a queue that delays everybody counts
	at      time.Duration // latest time
	working int           // requests
	area    float64       // seconds · requests working

	state     State
	window    float64       // so many may be working
	rate      float64       // throughput while saturated, per second
	lately    float64       // throughput of the last second of such rounds
	roundTime float64       // mean duration of the rounds that it is of
	base      float64       // latency without a queue
	bdp       float64       // as of the last probe
	held      time.Duration // when a request last found no place
	starved   time.Duration // when this process last lacked the processor, so that requests came late
	probed    time.Duration // when the last probe ended
	cleared   float64       // so many in flight were found to be no queue,
	clearAt   time.Duration // then

	before struct { // the last probe began
		limiting bool
		flight   float64
		rate     float64 // per second: what was answered, without what was quick
		calls    float64 // that the probe takes
	}
	cohort cohort                         // requests that began in a round while Open, and in the last one before a probe
	drain  struct{ served, took float64 } // the last one
	half   struct {                       // the last time that what is in flight has halved in a drain
		flight   int
		took, at time.Duration
	}
	quiet bool // while Limiting, fewer are in flight than a probe allows

	latency   latency       // of answers that are not quick
	spread    spread        // of all answers, while Open
	skipped   float64       // share of quick ones
	passed    int           // requests since the last probe,
	turned    int           // and those that were rejected
	fastest   minimum       // of single requests of all keys, also those that are apart; for all keys together only
	abandoned float64       // share of the requests that ended
	rest      float64       // mean time to the deadline when a request starts, at most memory; 0: unknown
	answered  time.Duration // when the last answer came
	hung      time.Duration // when the first one came after the backend hung

	generation int    // of the rounds of all keys
	known      bool   // what the lines show, while it is
	common     [2]fit // latency over what was found in flight of all keys, in this round and the last one

	counts
}

// counts belong to a round.
type counts struct {
	begin      time.Duration
	beginArea  float64
	were       int                                 // working at the begin
	ended      int                                 // all but quick ones
	served     int                                 // of these, what was answered: throughput
	worked     int                                 // and of these, what did not fail: base latency
	looked     int                                 // at the last look for evidence
	loaded     float64                             // what was in flight while these were, added up
	fit        fit                                 // of latency over the mean in flight meanwhile
	young      fit                                 // the same, of requests that began in this round only
	came       fit                                 // of latency over what was found in flight
	quickest   struct{ found, left, took float64 } // of a few, for the shared limit
	candidates int
}

func newLimit(at time.Duration, shared bool) *limit {
	l := &limit{shared: shared, at: at, window: math.Inf(1), held: at - memory, probed: at - memory, clearAt: at - memory, starved: at - memory}
	l.restart()
	return l
}

// free reports whether one more may start.
func (l *limit) free(bounds *Config) bool {
	if working := float64(l.working); working < l.window || working < float64(bounds.Min) {
		return true // the same as working < limit, without its cases for NaN
	}
	l.held = l.at
	return false
}

// limit is how many may be working.
func (l *limit) limit(bounds *Config) float64 {
	return min(max(l.window, float64(bounds.Min)), bounds.most())
}

// wait returns how long a request waits in the queue that was found.
func (l *limit) wait() time.Duration {
	if l.state != Limiting {
		return 0
	}
	return seconds(max(0, l.latency.mean-l.base))
}

// left returns how many may start.
func (l *limit) left(bounds *Config) float64 {
	return math.Ceil(max(l.window, float64(bounds.Min))) - float64(l.working)
}

// found reports whether a queue was found, also while its base latency is measured again.
func (l *limit) found() bool { return l.state == Limiting || l.state != Open && l.before.limiting }

// full reports whether as many are working as are in service at once, where a queue was found.
func (l *limit) full() bool {
	return l.found() && float64(l.working) >= l.rate*l.base
}

// work returns how many seconds a request takes once it runs, as far as is known.
func (l *limit) work() float64 {
	if l.found() {
		return l.base
	}
	return l.latency.mean
}

// throughput returns how many requests end per second, as far as is known.
func (l *limit) throughput() float64 {
	if l.state != Open || l.ended < round/4 {
		return l.rate
	}
	_, rate := l.measured()
	return rate
}

// start takes in how many seconds a request that starts has until its deadline. One whose deadline has passed says nothing.
func (l *limit) start(rest float64) {
	if rest <= 0 {
		return
	}
	rest = min(rest, memory.Seconds())
	if l.rest == 0 {
		l.rest = rest
	}
	l.rest += float64((rest - l.rest) / round)
}

// leave takes in a request that ends. Where it was abandoned, what it took says nothing. all is what it found in flight of
// all keys; calm says that the clock did not stand still recently.
func (l *limit) leave(began time.Duration, found int, all float64, o spillway.Outcome, calm, quick bool) {
	working, took := l.working, inSeconds(l.at-began)
	abandoned := o == spillway.OutcomeAbandoned
	if !abandoned {
		l.hangs(began, working)
	}
	l.passed++
	if !calm {
		l.starved = l.at
	}
	if l.skips(quick); quick {
		return
	}
	l.ended++
	l.abandoned = elapsed.Trim(l.abandoned - float64(l.abandoned/round))
	if abandoned {
		l.abandoned += 1.0 / round
		return
	}
	l.served++
	if o != spillway.OutcomeFailed {
		l.worked++
	}
	l.loaded += float64(float64(found+working) / 2)
	if o != spillway.OutcomeServed && took < l.latency.mean {
		return // a failure that came sooner than usual says nothing: the work was not done
	}
	l.latency.add(l.at, took, calm)
	if began >= l.cohort.from && began < l.cohort.to {
		l.cohort.add(float64(found), took)
	}
	if began >= l.hung {
		l.learn(took, float64(found), float64(working), all, began >= l.begin)
	}
}

// advance counts time. A probe that takes too long ends: what is left after twice the
// time in which a queue drains does not wait in that queue.
func (l *limit) advance(at time.Duration) {
	if at <= l.at {
		return
	}
	l.area += float64(float64(l.working) * inSeconds(at-l.at))
	l.at = at
	if l.state == Open || l.state == Limiting {
		return
	}
	took := inSeconds(at-l.begin) * l.before.rate / doubled
	switch {
	case l.state == Draining && (took > l.before.flight || l.fades()):
		l.window = max(l.window, float64(l.working))
		l.measure()
	case l.state == Probing && took > max(l.before.flight, l.probeCalls()):
		l.conclude()
	}
}

func (l *limit) parkAfter() time.Duration {
	if l.latency.n < round/2 {
		return memory
	}
	return max(lasting, seconds(parkTime*l.latency.mean))
}

// decide takes the action of the current state after a request has ended. A stall of this
// process, in seconds, explains a wait of the same length, and saturated processors explain
// any wait. It reports whether there is evidence of a queue; alone says that only one key was in use recently.
func (l *limit) decide(stall float64, busy, alone bool) (evidence bool) {
	if l.state == Open {
		if l.ended < l.looked+stride {
			return false
		}
		l.looked = l.ended
	}
	whole := l.at-l.begin >= brief // a shorter round tells nothing
	switch working := float64(l.working); l.state {
	case Open:
		if busy {
			l.restart()
		} else if whole && l.ended >= round/2 {
			return l.watch(stall)
		}
	case Draining:
		if working <= l.window {
			l.measure()
		} else {
			l.halve()
		}
	case Probing:
		if whole && (float64(l.ended) >= l.probeCalls() || l.fellShort()) {
			l.conclude()
		}
	case Limiting:
		switch quiet := working < lean*l.rate*l.base; {
		case quiet != l.quiet:
			l.quiet = quiet
			l.restart()
		case quiet:
			l.idle()
		case whole && l.ended >= max(round, int(l.window)):
			l.follow(alone)
		case l.at-l.probed > memory && !l.pays():
			l.open() // a round may never end: all answers may be quick now
		}
	}
	return false
}

// counted returns which part of the requests is measured. What is in service is the same with all requests and with these:
// quick ones raise the throughput and shorten the latency.
func (l *limit) counted() float64 { return max(1-l.skipped, 1.0/(2*round)) }

// skips counts what is quick.
func (l *limit) skips(quick bool) {
	l.skipped = elapsed.Trim(l.skipped - float64(l.skipped/(2*round)))
	if quick {
		l.skipped += 1.0 / (2 * round)
	}
}

// hangs finds that the backend hung: no answer came for 8 usual latencies, with requests in flight that took
// as long. What was in flight then waited for that, and not for one another.
func (l *limit) hangs(began time.Duration, left int) {
	long := parkTime * l.latency.mean
	if inSeconds(l.at-began) > long && left >= round/2 && l.latency.n >= round/2 && inSeconds(l.at-l.answered) > long {
		l.hung = l.at
		l.restart()
	}
	l.answered = l.at
}
