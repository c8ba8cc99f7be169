package ingress

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Core makes the decisions of a [Server] without I/O: it receives the time and what
// happens, and returns what to do. It reads no clock, sets no timer and starts no
// goroutine. A Server is a Core with all of these; a simulator has others. A Core is safe
// for concurrent use; make one with [NewCore].
type Core struct {
	settings  atomic.Pointer[settings]
	state     func(now time.Time) shed.State
	secret    bool      // clients cannot know the hash of a caller
	companion int       // goroutines of each request that are ready to run and are no work
	waiters   sync.Pool // of *shed.Waiter
	rejected  [spillway.Outcomes]atomic.Uint64
	signals   signals
	update    sync.Mutex // one Update at a time
}

// NewCore returns a Core, or an error that names the field of c that is wrong. state
// returns the state of the process at a time; Load of c is not used.
func NewCore(c Config, state func(now time.Time) shed.State) (*Core, error) {
	core := &Core{state: state, waiters: sync.Pool{New: func() any { return new(shed.Waiter) }}}
	return core, core.Update(c)
}

// Update changes the configuration of a Core in use, or returns an error that names the field
// that is wrong and changes nothing. The policies keep their state, except the shedder when it
// begins to enforce after it has observed: what it learned of requests that were not held back
// says nothing of the requests that it admits. Requests in flight end under the old configuration.
func (c *Core) Update(config Config) error {
	st, err := build(config)
	if err != nil {
		return err
	}
	c.update.Lock()
	defer c.update.Unlock()
	if old := c.settings.Load(); old != nil {
		if err := st.adopt(old); err != nil {
			return err
		}
	}
	st.core = c
	c.settings.Store(st)
	return nil
}

// Enter asks all gates in turn whether a request may be served, until one says to wait
// or rejects. a must be zero or have ended, and belongs to the request until that has
// ended. A call without a Level gets a random one, which Enter sets in call. Enter keeps neither call nor from, which is what is
// known of the caller. It allocates nothing unless the request waits or a gate observes.
func (c *Core) Enter(a *Admission, now time.Time, call *spillway.Call, from *ratelimit.Caller) Step {
	step := Step{Verdict: shed.Run}
	if c.begin(a, now, call) {
		a.enter(from, &step)
	}
	return step
}

// begin takes in a request, and reports whether it has to pass the gates.
func (c *Core) begin(a *Admission, now time.Time, call *spillway.Call) bool {
	st := c.settings.Load()
	if st.exempt(call) {
		return false
	}
	st.draw(call)
	a.call = *call // apart from the others: an assignment of several copies it twice
	a.settings, a.start = st, now
	a.gate, a.admitted, a.behind, a.would = 0, [gates]bool{}, false, false // an Admission that has ended has no more
	return true
}

// enter asks all gates. It reports whether the request runs; if not, step says what to do.
func (a *Admission) enter(from *ratelimit.Caller, step *Step) (runs bool) {
	c, st := a.settings.core, a.settings
	if st.config.Costs != nil {
		a.beginCost()
	}
	st.observe(a.start, &a.call)
	if c.signals.due(a.start) {
		c.refresh(st, a.start)
	}
	return a.advance(from, step)
}

// Reject reports whether a request would be rejected if it came now: it asks the gates that
// Enter asks, in the same order, until one would have the request wait. If the answer is a
// Rejection, it is counted and reported; if not, nothing was counted or taken, and the request
// must still Enter. As with Enter, a call without a Level gets one. Ctx is for the event alone, and may be nil.
func (c *Core) Reject(ctx context.Context, now time.Time, call *spillway.Call, from *ratelimit.Caller) Rejection {
	st := c.settings.Load()
	if st.exempt(call) {
		return Rejection{}
	}
	st.draw(call)
	for gate, mode := range st.modes {
		if mode != spillway.ModeEnforce {
			continue
		}
		if err := c.rejects(st, gate, now, call, from); err != nil {
			st.observe(now, call)
			if st.config.Costs != nil {
				st.config.Costs.Reject(now)
			}
			if st.config.Observer != nil {
				a := Admission{settings: st, ctx: ctx, call: *call, start: now}
				a.reportRejection(gate, err)
			}
			return c.rejection(st, now, call, err)
		}
	}
	return Rejection{}
}

// rejects returns the rejection of one gate.
func (c *Core) rejects(st *settings, gate int, now time.Time, call *spillway.Call, from *ratelimit.Caller) error {
	switch gate {
	case limitGate:
		if from.Application == "" && len(st.config.RateLimit.Exempt.Applications) > 0 {
			return nil // not known yet: the gate is asked when it is
		}
		return st.limiter.Reject(now, *from)
	case quotaGate:
		return st.quota.Reject(now, *call)
	default:
		by, state := c.shedder(gate, now, st)
		if gate == shedGate && st.config.LimitKey != nil {
			named := st.named(call)
			call = &named
		}
		return by.Reject(now, call, c.flowAt(by.Shedder, call, from), &state)
	}
}

// Next returns the next Waiter that leaves a queue: its request must Proceed. Ask again
// until the answer is nil. If busy is set then, a request would run if a processor were
// free. Otherwise ask again after a [Step] with Wake, and after a request has ended.
func (c *Core) Next(now time.Time) (w *shed.Waiter, busy bool) {
	st := c.settings.Load()
	for _, gate := range [...]int{shedGate, flightGate} { // what leaves the second arrives at the first
		by, state := c.shedder(gate, now, st)
		w, more := by.Next(now, state)
		if w != nil {
			return w, false
		}
		busy = busy || more
	}
	return nil, busy
}

// Waiting returns how many requests wait in queues. It takes no lock.
func (c *Core) Waiting() int {
	st := c.settings.Load()
	return st.shedders[shedGate].Waiting() + st.shedders[flightGate].Waiting()
}

// shed returns the current shedder.
func (c *Core) shed() shedder { return c.settings.Load().shedders[shedGate] }

// shedder returns the one that is a gate, and the state that it decides by. In front of
// MaxInFlight no load counts.
func (c *Core) shedder(gate int, now time.Time, st *settings) (shedder, shed.State) {
	if gate == flightGate {
		return st.shedders[gate], shed.State{Processors: 1}
	}
	state := c.state(now)
	if st.config.ProxyOnly {
		state.Runnable = 0 // what only forwards is not busy because goroutines are ready to run
	}
	return st.shedders[gate], state
}
