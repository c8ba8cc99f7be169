package concurrency

import (
	"math"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
)

// A Limiter decides how many requests may be at work at once: of each key, and of all keys
// together. It implements [spillway.Gate], is safe for concurrent use, and allocates only for new
// keys and for more requests in flight than ever before. Make one with [New].
type Limiter struct {
	mu     sync.Mutex
	config Config

	clock
	table
	records records
	all     *limit // the limit of all keys together

	parked   int           // parked requests of all keys
	swept    time.Duration // when all keys were last advanced
	fastest  minimum       // least recent latency of single requests, in seconds
	rejected uint64
}

// New returns a Limiter that has learnt nothing yet. An error names the field of c that is out of
// range.
func New(c Config) (*Limiter, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Limiter{config: c, clock: clock{runs: 1, stood: -memory}, records: records{list: make([]record, 1)}, all: newLimit(0, true)}
	l.table = table{keys: append(make([]key, 0, c.MaxKeys+1), l.newKey(Others)), index: map[string]int{}}
	l.cap()
	return l, nil
}

// Others is the name in [Stats] of the limit that all names without their own limit share.
const Others = "(others)"

// Update changes the configuration of a Limiter in use. An error names the field that is out of
// range, and nothing has changed then. The Limiter keeps what it has learnt, also for more keys
// than a smaller [Config.MaxKeys] allows. [Config.Fixed] ends all learnt limits.
func (l *Limiter) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.config = c
	l.cap()
	if c.Fixed {
		for i := range l.keys {
			l.keys[i].open()
		}
		l.all.open()
	}
	return nil
}

// Admit implements [spillway.Gate]. It admits a call, or rejects it at once if the limit of its Key
// or the limit of all keys is reached. Callers with a waiting queue use [Limiter.Ask] and
// [Limiter.Enter] instead.
func (l *Limiter) Admit(now time.Time, call spillway.Call) (t spillway.Ticket, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, call.Key)
	if !l.free(slot) {
		l.rejected++
		return spillway.Ticket{}, rejections.At(l.reached(slot))
	}
	l.enter(&t, slot, call.Criticality, rest(now, call.Deadline))
	return t, nil
}

// reached returns the number of calls in flight that has reached a limit, when a call is rejected:
// MaxInFlight, the cap of its key, or the learnt limit that decides.
func (l *Limiter) reached(slot int) float64 {
	k := &l.keys[slot]
	switch {
	case l.headroom() <= 0:
		return float64(l.all.working)
	case k.spare() <= 0:
		return float64(k.max)
	default:
		return float64(l.rule(k).working)
	}
}

// rejections has a rejection for each number of calls in flight that has reached the limit.
var rejections = rejection.NewTable(func(level float64) *spillway.RejectedError {
	return &spillway.RejectedError{
		Policy: "concurrency",
		Reason: spillway.ReasonMaxInFlight,
		Level:  level,
		Limit:  level,
		Unit:   "calls in flight",
		Advice: "more in flight would only wait; send less, or give what the calls wait for more capacity",
	}
})

// Working returns how many requests of all keys are at work, and how many are parked.
func (l *Limiter) Working() (working, parked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.working, l.parked
}

// Enter admits a call without checking any limit, for callers that have asked with [Limiter.Ask].
// Its Ticket must be settled exactly once.
func (l *Limiter) Enter(now time.Time, call spillway.Call) (t spillway.Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(&t, l.slot(now, call.Key), call.Criticality, rest(now, call.Deadline))
	return t
}

// Take admits a call if no limit is at work and its deadline is not too close. This means: no queue
// was found for its key or for all keys, MaxInFlight and MaxInFlightByKey are not reached, and the
// deadline is zero or farther away than the fastest recent response. ok reports whether the call
// was admitted; if not, decide with [Limiter.Ask].
func (l *Limiter) Take(now time.Time, key string, class spillway.Criticality, deadline time.Time) (t spillway.Ticket, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, key)
	left := rest(now, deadline)
	if !deadline.IsZero() && left <= l.fastest.value() || l.limits(&l.keys[slot]) || !l.free(slot) {
		return spillway.Ticket{}, false
	}
	l.enter(&t, slot, class, left)
	return t, true
}

// limits reports whether a learnt limit may hold back requests of a key: its state is not Open, or
// slow start bounds it.
func (l *Limiter) limits(k *key) bool {
	return l.rule(k).state != Open || k.slow.bounds() || l.all.slow.bounds()
}

// headroom returns how many more requests MaxInFlight admits.
func (l *Limiter) headroom() float64 { return l.config.most() - float64(l.all.working) }

// free reports whether all limits let one more request of a key start.
func (l *Limiter) free(slot int) bool {
	k := &l.keys[slot]
	return k.limit.free(&l.config) && l.all.free(&l.config) && l.headroom() > 0 && k.spare() > 0
}

// longest is more seconds than any request takes, and fits a time.Duration.
const longest = 1e6

// rest returns the seconds from now to a deadline, +Inf without one.
func rest(now, deadline time.Time) float64 {
	if deadline.IsZero() {
		return math.Inf(1)
	}
	return inSeconds(deadline.Sub(now))
}

// enter admits a request and writes its ticket to *t. It does not return the Ticket: copying it
// just after its fields were written would take the processor longer.
func (l *Limiter) enter(t *spillway.Ticket, slot int, class spillway.Criticality, left float64) {
	k := &l.keys[slot]
	k.start(left)
	l.all.start(left)
	k.held++
	k.used = l.at
	t.By, t.Criticality = l, class
	l.records.open(t, record{
		began: l.at, within: seconds(min(left, longest)) + brief, slot: int32(slot),
		own: int32(k.working), all: int32(l.all.working),
	})
	k.flight.add(l.at, 1)
	l.count(k)
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle].
func (l *Limiter) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records.of(&t)
	if r == nil {
		return
	}
	if t.Suspended > 0 {
		l.resume(now, r)
	}
	l.advance(now)
	l.moveOn(int(r.slot))
	k := &l.keys[r.slot]
	k.held--
	l.learn(k, r, o)
	l.records.close(&t)
	l.count(k)
	if !l.config.Fixed {
		l.decide(k)
	}
}

// hear records whether a request was answered in time, and how long it took.
func (l *Limiter) hear(r *record, answer bool, took time.Duration) {
	if r.heard = true; !l.config.Fixed {
		l.keys[r.slot].hear(answer, inSeconds(took), inSeconds(r.within-brief))
		l.all.hear(answer, inSeconds(took), inSeconds(r.within-brief))
	}
}

// learn records a request that ends. If a request timed out more than 5 ms after its deadline, the
// deadline did not end its work: the work was done, so the request counts as served.
func (l *Limiter) learn(k *key, r *record, o spillway.Outcome) {
	took := l.at - r.began
	if o == spillway.OutcomeTimedOut && took > r.within {
		o = spillway.OutcomeServed
	}
	answer, working := answered(o), k.flight.end(r.began)
	if !r.heard {
		l.hear(r, answer && took <= r.within, took)
	}
	if answer {
		l.fastest.add(memory, l.at, inSeconds(took))
	}
	if !working {
		if answer && k.latency.n < round/2 { // it was parked because the usual latency was unknown
			k.latency.add(l.at, inSeconds(took), 0)
			l.all.latency.add(l.at, inSeconds(took), 0)
		}
		return
	}
	e := ending{outcome: o, began: r.began, stood: l.clock.stood}
	if l.at-e.stood < lasting {
		e.stall = l.stall()
	}
	k.leave(&e, int(r.own))
	l.all.leave(&e, int(r.all))
}

var _ interface {
	spillway.Gate
	spillway.Suspender
	spillway.Witness
} = (*Limiter)(nil)
