package concurrency

import (
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
)

// A Limiter decides how many requests may be at work at once: of each key, and of all
// keys together. It is a [spillway.Gate], safe for concurrent use, and allocates nothing
// but for a new key. Make one with [New].
type Limiter struct {
	mu     sync.Mutex
	config Config

	clock
	table
	together

	working  int           // requests of all keys
	parked   int           // the same
	swept    time.Duration // when those of all keys were last counted
	fastest  minimum       // latency of single requests
	silence  silence       // since the last answer
	rejected uint64
}

// New returns a Limiter that knows nothing yet, or an error that names the field of c
// that is out of range.
func New(c Config) (*Limiter, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Limiter{config: c, clock: clock{runs: 1, stood: -memory}, together: together{shared: newLimit(0, true)}}
	l.table = table{keys: append(make([]key, 0, c.Keys+1), l.newKey(Others)), index: map[string]int{}, other: -memory - 1}
	l.cap()
	return l, nil
}

// Others is the name in [Stats] of the limit that all further keys share.
const Others = "(others)"

// Update changes the configuration of a Limiter in use, or returns an error that names
// the field that is out of range and changes nothing. What was learnt is kept, and so
// are keys beyond a smaller Keys.
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
		l.shared.open()
		l.rejoin()
	}
	return nil
}

// Admit implements [spillway.Gate]: it admits a call, or rejects it at once if the limit
// of its Key, or that of all keys, is reached. Callers that can wait use
// [Limiter.Ask] and [Limiter.Enter].
func (l *Limiter) Admit(now time.Time, call spillway.Call) (t spillway.Ticket, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, call.Key)
	if !l.free(slot) {
		l.rejected++
		l.rule(&l.keys[slot]).turned++
		return spillway.Ticket{}, rejections.At(l.reached(slot))
	}
	l.enter(&t, slot, call.Criticality, rest(now, call.Deadline))
	return t, nil
}

// reached returns how many calls are in flight at the limit that rejects a call: that of all
// keys, the cap of its key, or the limit of its key.
func (l *Limiter) reached(slot int) float64 {
	k := &l.keys[slot]
	switch {
	case l.room() <= 0:
		return float64(l.working)
	case k.spare() <= 0:
		return float64(k.max)
	default:
		return float64(l.rule(k).working)
	}
}

// rejections are by the number of calls in flight, which has reached the limit.
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

// Working returns how many requests are at work, and how many are parked.
func (l *Limiter) Working() (working, parked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.working, l.parked
}

// Rejected notes that a request of a key was rejected because it found no place: by a waiting queue, which asks for
// a place many times for each request.
func (l *Limiter) Rejected(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rule(&l.keys[l.find(key)]).turned++
}

// Enter admits a call without asking whether it may start. Its Ticket must be settled
// exactly once.
func (l *Limiter) Enter(now time.Time, call spillway.Call) (t spillway.Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(&t, l.slot(now, call.Key), call.Criticality, rest(now, call.Deadline))
	return t
}

// Take admits a call if no queue was found, for its key or for all, Max is not reached, and the
// deadline is zero or farther away than the fastest recent response. It reports whether it
// did: if not, ask again with Ask.
func (l *Limiter) Take(now time.Time, key string, class spillway.Criticality, deadline time.Time) (t spillway.Ticket, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, key)
	left := rest(now, deadline)
	if !deadline.IsZero() && left <= l.fastest.value() {
		return spillway.Ticket{}, false
	}
	if l.rule(&l.keys[slot]).state != Open || !l.free(slot) {
		return spillway.Ticket{}, false
	}
	l.enter(&t, slot, class, left)
	return t, true
}

// rule returns the limit that decides for a key: its own, that of the others, or that of all keys while it is at work.
func (l *Limiter) rule(k *key) *limit {
	k = l.group(k)
	if l.shared.state == Open || k.apart {
		return k.limit
	}
	return l.shared
}

// room returns how many more may start by Max.
func (l *Limiter) room() float64 { return l.config.most() - float64(l.working) }

func (l *Limiter) free(slot int) bool {
	k := &l.keys[slot]
	return l.rule(k).free(&l.config) && l.room() > 0 && k.spare() > 0
}

// rest returns the seconds until a deadline, a memory for none.
func rest(now, deadline time.Time) float64 {
	if deadline.IsZero() {
		return memory.Seconds()
	}
	return inSeconds(deadline.Sub(now))
}

// enter admits a request, and writes t where it is: a processor that copies a Ticket waits for the fields that
// were just written.
func (l *Limiter) enter(t *spillway.Ticket, slot int, class spillway.Criticality, left float64) {
	k := &l.keys[slot]
	u := l.group(k)
	u.start(left)
	if !u.apart {
		l.shared.start(left)
	}
	k.held++
	k.used = l.at
	t.By, t.Criticality, t.Epoch, t.State = l, class, uint64(l.at), pack(slot, u.working, l.shared.working, deadlineOf(left))
	k.flight.add(l.at, 1)
	l.count(k)
}

// count takes in how many requests of a key are at work now.
func (l *Limiter) count(k *key) {
	by, u := k.flight.working()-k.active, l.group(k)
	k.active += by
	u.working += by
	l.working += by
	if !u.apart {
		l.shared.working += by
	}
	l.parked += k.flight.parked - k.parked
	k.parked = k.flight.parked
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle].
func (l *Limiter) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Suspended > 0 {
		t = l.resume(now, t)
	}
	slot, own, all, due := unpack(t.State)
	l.advance(now)
	l.moveOn(slot)
	k := &l.keys[slot]
	k.held--
	began := time.Duration(t.Epoch)
	if k.flight.end(began) {
		if o == spillway.OutcomeTimedOut && l.at-began > due.latest() {
			o = spillway.OutcomeServed // nothing ended it at its deadline: the work was done
		}
		l.learn(k, began, own, all, o)
	}
	l.count(k)
	if !l.config.Fixed {
		l.decide(l.group(k))
	}
}

// learn takes in a request that ends, and what it found in flight when it began.
func (l *Limiter) learn(k *key, began time.Duration, own, all int, o spillway.Outcome) {
	u := l.group(k)
	u.keepUp(l.shared.generation)
	e := ending{outcome: o, began: began, all: float64(all), stood: l.clock.stood}
	if o != spillway.OutcomeAbandoned {
		e.silence, e.waited = l.silence.lasts(&l.shared.meter)
	}
	if answered(o) {
		e.quick = u.isQuick(l.at-began, l.rule(k).state == Open)
		l.silence.end(&l.shared.meter)
		l.fastest.add(l.at, inSeconds(l.at-began))
	}
	u.leave(&e, own)
	if u != k { // it must know its latency when it gets its own limit
		k.keepUp(l.shared.generation)
		k.leave(&e, own)
	}
	if !u.apart {
		l.shared.leave(&e, all)
	}
}

// decide takes the actions of the limits that count for a key after one of its requests has ended. If only one
// key was in use recently, both limits see the same, and each acts by itself.
func (l *Limiter) decide(k *key) {
	stall, alone := l.stall(), l.at-l.other > memory
	if k.decide(stall, l.busy, false) {
		switch {
		case l.rule(k) != k.limit:
			k.restart()
		case alone:
			k.suspect()
		default:
			l.blame(k)
		}
	}
	if !k.apart && l.shared.decide(stall, l.busy, alone) {
		if alone {
			l.begin(0)
			l.shared.suspect()
		} else if l.shared.overdue {
			l.suspectAll(0)
		} else if most := l.steepest(); most.n > 0 {
			l.suspectAll(most.slope())
		}
	}
	if k.apart && l.shared.unused() {
		l.shared.open() // none of its own requests will find that out
	}
	switch {
	case l.shared.state == Open && l.divided:
		l.rejoin()
	case l.shared.state != Open && !k.apart && k.state != Open:
		k.open()
	case l.shared.state == Limiting && l.at >= l.reviewAt:
		l.review()
	case l.shared.state != Open && l.first && l.at >= l.reviewAt:
		l.gather()
	}
}

// pack keeps the place of a key, what a request found in flight, and the time to its deadline in one word. A place beyond Keys and
// MaxByKey is that of a key that left them with a request in flight, so that a million suffice.
func pack(slot, own, all int, due due) uint64 {
	return uint64(slot)<<44 | uint64(min(own, most))<<26 | uint64(min(all, most))<<8 | uint64(due)
}

func unpack(w uint64) (slot, own, all int, d due) {
	return slotOf(w), int(w >> 26 & most), int(w >> 8 & most), due(w)
}

func slotOf(w uint64) int { return int(w >> 44) }

const most = 1<<18 - 1

var _ interface {
	spillway.Gate
	spillway.Suspender
} = (*Limiter)(nil)
