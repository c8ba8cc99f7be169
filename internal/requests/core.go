package requests

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Core has the server policies of one process, and makes their decisions. It is safe for
// concurrent use. Make one with [New], or set the Shell of a zero Core and call [Core.Update].
type Core struct {
	// Shell must not change once the Core has its first configuration.
	Shell

	settings atomic.Pointer[settings]
	waiters  sync.Pool // of *shed.Waiter
	rejected [spillway.Outcomes]atomic.Uint64
	signals  signals
	update   sync.Mutex // one Update at a time
}

// A Shell is what a [Core] needs of its surroundings.
type Shell struct {
	// State returns the state of the process at a time. It may be called by many goroutines at
	// once.
	State func(now time.Time) shed.State
	// NewWaiter returns a new Waiter, which the Core keeps and uses for one request after the
	// other. Nil means new(shed.Waiter).
	NewWaiter func() *shed.Waiter
	// Companions is the number of goroutines of each request that State counts as runnable and that
	// are no work.
	Companions int
	// Secret makes the hashes of callers unpredictable for clients, and so different in each
	// process. Without it they are the same in all processes, as a simulation needs.
	Secret bool
}

// New returns a Core, or an error that names the field of c that is wrong.
func New(c Config, s Shell) (*Core, error) {
	core := &Core{Shell: s}
	return core, core.Update(c)
}

// Update changes the configuration of a Core in use, or returns an error that names the field
// that is wrong and changes nothing. The policies keep their state, except the shedder when it
// begins to enforce after it has observed: what it learned of requests that were not held back
// says nothing of the requests that it admits. Requests in flight end under the old
// configuration.
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

// Enter is [Core.Begin] and [Admission.Ask]. An exempt request runs.
func (c *Core) Enter(a *Admission, now time.Time, call *spillway.Call, from *ratelimit.Caller) Step {
	step := Step{Verdict: shed.Run}
	if c.Begin(a, now, call) {
		a.Ask(from, &step)
	}
	return step
}

// Begin begins a request in a, which must be zero or have ended and belongs to the request until
// that has ended. It reports whether the request has to pass the gates; if not, the request is
// exempt and a stays as it is. A call without a Level gets a random one, which Begin sets in
// call, too. Begin does not keep call.
func (c *Core) Begin(a *Admission, now time.Time, call *spillway.Call) bool {
	st := c.settings.Load()
	if st.config.exempt(call) {
		return false
	}
	st.draw(call)
	a.Call = *call // not in the next statement, where it would be copied twice
	a.settings, a.Start = st, now
	a.gate, a.admitted, a.behind, a.wouldReject = 0, [gates]bool{}, false, false // an Admission that has ended has no more
	return true
}

// Reject reports whether a request would be rejected if it came now. It asks the gates that Ask
// asks, in the same order, until one would have the request wait. If the request is rejected, that
// is counted and reported, and r is the answer; if not, nothing was counted or taken, r stays as it
// is, and the request must still Begin. As in Begin, a call without a Level gets one. Ctx is for
// the event alone, and may be nil.
//
// Reject does not return the Rejection, as a shell converts it: that would be one more copy on a
// path that has to be cheap.
func (c *Core) Reject(
	ctx context.Context, now time.Time, call *spillway.Call, from *ratelimit.Caller, r *Rejection,
) (rejected bool) {
	st := c.settings.Load()
	if st.config.exempt(call) {
		return false
	}
	st.draw(call)
	for gate, mode := range st.modes {
		if mode != spillway.ModeEnforce {
			continue
		}
		if err := c.rejects(st, gate, now, call, from); err != nil {
			st.countAttempt(now, call)
			if st.config.Costs != nil {
				st.config.Costs.Reject(now)
			}
			if st.config.Observer != nil {
				a := Admission{settings: st, Context: ctx, Call: *call, Start: now}
				a.reportRejection(gate, err)
			}
			*r = c.rejection(st, now, call, err)
			return true
		}
	}
	return false
}

// rejects returns the rejection by one gate, or nil.
func (c *Core) rejects(st *settings, gate int, now time.Time, call *spillway.Call, from *ratelimit.Caller) error {
	switch gate {
	case limitGate:
		if from.Application == "" && len(st.config.RateLimit.Exempt.Applications) > 0 {
			return nil // the application is not known yet, and may be exempt
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
		return by.Reject(now, call, flowAt(by.Shedder, call, from, c.Secret), &state)
	}
}

// Next returns the next Waiter that leaves a queue: its request must Proceed. The shell asks again
// until the answer is nil. If busy is set then, a request would run if a processor were free.
func (c *Core) Next(now time.Time) (w *shed.Waiter, busy bool) {
	st := c.settings.Load()
	// Requests that leave the queue of flightGate arrive at shedGate, so shedGate comes first.
	for _, gate := range [...]int{shedGate, flightGate} {
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

// Shedder returns the current shedder, the last gate.
func (c *Core) Shedder() Shedder { return c.settings.Load().shedders[shedGate] }

// shedder returns the shedder that is a gate, and the state of the process by which it decides.
func (c *Core) shedder(gate int, now time.Time, st *settings) (Shedder, shed.State) {
	if gate == flightGate { // this gate ignores the load of the process
		return st.shedders[gate], shed.State{Processors: 1}
	}
	state := c.State(now)
	if st.config.ProxyOnly { // a process that only forwards is not busy because goroutines are ready to run
		state.Runnable = 0
	}
	return st.shedders[gate], state
}

// newWaiter returns a Waiter that is not in use. It goes back to the pool after the wait.
func (c *Core) newWaiter() *shed.Waiter {
	if w, ok := c.waiters.Get().(*shed.Waiter); ok {
		return w
	}
	if c.NewWaiter == nil {
		return new(shed.Waiter)
	}
	return c.NewWaiter()
}
