package concurrency

import (
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
	"github.com/seed90641741/spillway/internal/rejection"
)

// A Limiter decides how many requests may be at work at once: of each key, and of all
// keys together. It is a [spillway.Gate], safe for concurrent use, and allocates nothing
// but for a new key. Make one with [New].
type Limiter struct {
	mu     sync.Mutex
	config Config
	clock  elapsed.Clock
	at     time.Duration // the clock: time in which this process ran
	wall   time.Duration // latest time, by the caller's clock
	named  int           // keys in MaxByKey
	full   time.Duration // no place for a new key before then

	shared *limit
	keys   []key          // the first is for all further keys
	index  map[string]int // in keys
	latest int            // the place of the key that was last looked up
	other  time.Duration  // when that was last another key than the one before

	beats    bool          // Beat is called
	beat     time.Duration // when, on the clock
	beatWall time.Duration // the same on the caller's
	busy     bool          // the processors of this process are
	runs     float64       // share of the time that the clock runs
	stalls   minimum       // of seconds that it stood still, each below zero
	stood    time.Duration // when it last did
	rejected uint64
}

// key is a limit with its name.
type key struct {
	*limit
	name string
	held int           // tickets that are not settled
	max  int           // as in MaxByKey; 0: none
	full time.Duration // max counts as reached before then
	used time.Duration // when one last was handed out
}

// late is how far the clock moves from one heartbeat to the next at most: their interval, and
// a wait that does not matter.
const late = 10*time.Millisecond + brief

// New returns a Limiter that knows nothing yet, or an error that names the field of c
// that is out of range.
func New(c Config) (*Limiter, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Limiter{config: c, runs: 1, other: -memory - 1, stood: -memory, shared: newLimit(0, true), index: map[string]int{}}
	l.keys = append(make([]key, 0, c.Keys+1), key{limit: newLimit(0, false), name: Others})
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
	}
	return nil
}

// Admit implements [spillway.Gate]: it admits a call, or rejects it at once if the limit
// of its Key, or that of all keys, is reached. Callers that can wait use
// [Limiter.Ask] and [Limiter.Enter].
func (l *Limiter) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, call.Key)
	if !l.free(slot) {
		l.rejected++
		return spillway.Ticket{}, rejections.At(l.reached(slot))
	}
	return l.enter(slot, call.Criticality), nil
}

// reached returns how many calls are in flight at the limit that rejects a call: that of all
// keys, the cap of its key, or the limit of its key.
func (l *Limiter) reached(slot int) float64 {
	k := &l.keys[slot]
	switch {
	case l.shared.left(&l.config) <= 0:
		return float64(l.shared.flight.working())
	case k.spare() <= 0:
		return float64(k.max)
	default:
		return float64(k.flight.working())
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

// Ask reports whether one more request of a key may start at the time now, and what is
// known of the limit that decides. If it may not, the Limiter knows that one waits.
func (l *Limiter) Ask(now time.Time, key string) spillway.Pace {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, key)
	p := spillway.Pace{Free: l.free(slot), Fastest: l.shared.fastest.value()}
	decides := l.shared
	if l.decides(slot) {
		p.Scope, decides = slot+1, l.keys[slot].limit
	}
	p.Left, p.Found, p.Saturated = l.left(slot), decides.found(), decides.full()
	p.Usual = l.keys[slot].work()
	p.Parked, p.Wait = decides.parkAfter(), decides.wait()
	p.Latency, p.Throughput, p.Abandoned = decides.work()/l.runs, decides.throughput()*l.runs, decides.abandoned
	return p
}

// Working returns how many requests are at work, and how many are parked.
func (l *Limiter) Working() (working, parked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shared.flight.working(), l.shared.flight.parked
}

// Enter admits a call without asking whether it may start. Its Ticket must be settled
// exactly once.
func (l *Limiter) Enter(now time.Time, call spillway.Call) spillway.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enter(l.slot(now, call.Key), call.Criticality)
}

// Take admits a call if no queue was found, for its key or for all, Max is not reached, and the
// deadline is zero or farther away than the fastest recent response. It reports whether it
// did: if not, ask again with Ask.
func (l *Limiter) Take(now time.Time, key string, class spillway.Criticality, deadline time.Time) (spillway.Ticket, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, key)
	if !deadline.IsZero() && deadline.Sub(now).Seconds() <= l.shared.fastest.value() {
		return spillway.Ticket{}, false
	}
	if l.shared.state != Open || l.keys[slot].state != Open || !l.free(slot) {
		return spillway.Ticket{}, false
	}
	return l.enter(slot, class), true
}

// free asks both limits. While that of all keys is at work it decides alone: the keys
// wait for the same thing.
func (l *Limiter) free(slot int) bool {
	own := l.shared.state != Open || l.keys[slot].free(&l.config)
	return l.shared.free(&l.config) && own && l.keys[slot].spare() > 0
}

// left returns how many more of a key may start, by both limits.
func (l *Limiter) left(slot int) float64 {
	left := min(l.shared.left(&l.config), l.keys[slot].spare())
	if l.shared.state == Open {
		left = min(left, l.keys[slot].left(&l.config))
	}
	return left
}

func (l *Limiter) enter(slot int, class spillway.Criticality) spillway.Ticket {
	k := &l.keys[slot]
	k.held++
	k.used = l.at
	return spillway.Ticket{
		By: l, Criticality: class, Epoch: uint64(l.at),
		State: pack(slot, k.enter(), l.shared.enter()),
	}
}

// slot returns the place of a key, and advances the clock, that key and what all share.
func (l *Limiter) slot(now time.Time, name string) int {
	l.advance(now)
	slot := l.latest
	if slot == 0 || l.keys[slot].name != name {
		if slot != 0 {
			l.other = l.at
		}
		slot = l.find(name)
		l.latest = slot
	}
	l.moveOn(slot)
	return slot
}

func (l *Limiter) find(name string) int {
	if slot, ok := l.index[name]; ok {
		return slot
	}
	return l.place(name)
}

func (l *Limiter) moveOn(slot int) {
	l.keys[slot].advance(l.at)
	l.shared.advance(l.at)
}

// place finds a place for a new key: a free one, or that of an unused key, or the one of
// all others.
func (l *Limiter) place(name string) int {
	slot := len(l.keys)
	if slot <= l.config.Keys+l.named {
		l.keys = append(l.keys, key{})
	} else if slot = l.unused(); slot == 0 {
		return 0
	} else {
		delete(l.index, l.keys[slot].name)
	}
	l.keys[slot] = key{limit: newLimit(l.at, false), name: name, used: l.at}
	l.index[name] = slot
	return slot
}

// unused returns the place of a key without requests for a minute, 0 for none. After a
// search without a result it waits a second, so that many names cost little.
func (l *Limiter) unused() int {
	if l.at < l.full {
		return 0
	}
	for slot := range l.keys[1:] {
		if k := &l.keys[slot+1]; k.held == 0 && k.max == 0 && l.at-k.used > 6*memory {
			return slot + 1
		}
	}
	l.full = l.at + time.Second
	return 0
}

// advance moves the clock. It stands still for times that go back, and while this process
// does not run: between two heartbeats it moves by at most late.
func (l *Limiter) advance(now time.Time) {
	wall := l.clock.See(now)
	if wall == l.wall {
		return
	}
	l.at += wall - l.wall
	l.wall = wall
	if l.beats {
		l.at = min(l.at, l.beat+late)
	}
}

// Beat is a heartbeat: something calls it every 10 ms while requests are in flight. If it
// comes late, this process did not get the processor, and what its requests took longer
// says nothing of what they wait for: the clock of the Limiter stands still then. Without a
// first Beat, and after [Limiter.Rest], it never does. While busy, this process uses most
// of its processors: they are what its requests wait for, and no other queue is looked for.
func (l *Limiter) Beat(now time.Time, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	if wall := l.wall - l.beatWall; l.beats && wall > 0 {
		l.runs += float64((float64(l.at-l.beat)/float64(wall) - l.runs) * (1.0 / 32))
		l.stalls.add(l.at, -max(0, wall-late).Seconds())
		if wall > late {
			l.stood = l.at
		}
	}
	l.beats, l.beat, l.beatWall, l.busy = true, l.at, l.wall, busy
}

// Rest says that no Beat comes until requests are in flight again.
func (l *Limiter) Rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats, l.runs, l.busy = false, 1, false
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle].
func (l *Limiter) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Suspended > 0 {
		t = l.resume(now, t)
	}
	slot, own, all := unpack(t.State)
	l.advance(now)
	l.moveOn(slot)
	k := &l.keys[slot]
	began := time.Duration(t.Epoch)
	k.held--
	meanwhile := float64(all+l.shared.flight.working()) / 2
	calm := l.at-l.stood >= lasting
	quick := k.leave(began, own, meanwhile, o, calm, false)
	l.shared.leave(began, all, meanwhile, o, calm, quick)
	if l.config.Fixed {
		return
	}
	stall := -l.stalls.value()
	alone := l.shared.state != Open || l.shared.wasClear(float64(l.shared.flight.working()))
	if k.decide(stall, l.busy, alone) {
		l.shared.suspectAll()
	}
	l.shared.decide(stall, l.busy, l.at-l.other > memory)
	if l.shared.state != Open && k.state != Open {
		k.open()
	}
}

// pack keeps the place of a key, and what a request found in flight, in one word.
func pack(slot, own, all int) uint64 {
	return uint64(slot)<<48 | uint64(min(own, most))<<24 | uint64(min(all, most))
}

func unpack(w uint64) (slot, own, all int) {
	return int(w >> 48), int(w >> 24 & most), int(w & most)
}

const most = 1<<24 - 1

var _ interface {
	spillway.Gate
	spillway.Suspender
} = (*Limiter)(nil)
