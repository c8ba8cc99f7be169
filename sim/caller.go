package sim

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/ejection"
	"github.com/seed90641741/spillway/throttle"
)

// A caller is one client of an edge. Its policies are made when they are needed, and dropped
// when they know no more than new ones.
type caller struct {
	bucket    *budget.Bucket // nil: as new
	active    *active        // nil: as new
	connected uint64         // tasks of the subset
	turn      uint32         // of the round robin
	good      uint32         // useful answers
}

// active is what there is of a caller only while it calls, and for some time after:
// policies that know more than new ones. A throttle knows nothing once its window
// has passed, a limiter a minute after the last call, and an ejection two minutes after it
// began.
type active struct {
	lateThrottle

	limiter *inflight.Limiter
	usual   calls.Usual
	shares  calls.Shares
	ejected map[int32]*ejection.Ejection // tasks that have said when to come back
	flying  int32                        // attempts under way
	open    int32                        // connections in use
	queue   queue[ref]                   // for one
	used    int64                        // when an attempt last ended
}

// use makes the policies of a caller those of the stack. So all callers share one stack, and
// have policies of their own.
func (e *edge) use(of int32) *active {
	e.current = of
	c := &e.callers[of]
	if c.active == nil {
		l, _ := inflight.New(inflight.Config{MaxInFlight: e.config.Egress.MaxInFlight}) // was tried once
		c.active = &active{lateThrottle: lateThrottle{config: &e.throttle}, limiter: l}
	}
	a := c.active
	e.stack.Throttle, e.stack.InFlight, e.stack.Usual, e.stack.Shares = &a.lateThrottle, a.limiter, &a.usual, &a.shares
	return a
}

// settled notes that an attempt has ended, and drops now and then what knows nothing any more.
func (e *edge) settled(c *call) {
	c.gen++
	c.trying = false
	a := e.callers[c.client].active
	a.used = e.now
	a.flying--
	if e.now < e.swept+e.keep {
		return
	}
	e.swept = e.now
	for i := range e.callers {
		if c := &e.callers[i]; c.active != nil && c.active.flying == 0 && c.active.used+e.keep <= e.now {
			c.active = nil
		}
	}
}

// callerBudget is the budget of the current caller of an edge: all share the strategy.
type callerBudget edge

// bucket returns the bucket of the caller, which is made when it is first needed.
func (b *callerBudget) bucket() *budget.Bucket {
	c := &b.callers[b.current]
	if c.bucket == nil {
		c.bucket, _ = budget.New(b.budget) // was tried once
	}
	return c.bucket
}

// Level has retries leave what others need, as for a bucket.
func (b *callerBudget) Level() (left, capacity float64) { return b.bucket().Level() }

// Withdraw implements [retry.Budget].
func (b *callerBudget) Withdraw(now time.Time, key string, tokens float64) (left, capacity float64, ok bool) {
	return b.bucket().Withdraw(now, key, tokens)
}

// Deposit implements [retry.Budget]. It leaves out what changes nothing: a full bucket that was
// never used.
func (b *callerBudget) Deposit(key string, tokens float64) {
	if b.callers[b.current].bucket != nil || b.budget.Empty {
		b.bucket().Deposit(key, tokens)
	}
}

// A lateThrottle is an [calls.Throttle] that is made when there is something to know. While
// all calls were accepted, it is enough to know when: a throttle that receives them later is
// what it would be.
type lateThrottle struct {
	config   *throttle.Config
	throttle *throttle.Routes // nil while the past is short, and has no rejection
	past     []int64          // when calls were accepted, and of which class
	limited  time.Time        // when the in-flight limit was reached
	route    throttle.Route   // of the calls
}

// short is how many accepted calls a caller can have had without a throttle.
const short = 8

// unseen is in the tickets of calls that were admitted when there was no throttle.
type unseen struct{}

// Settle implements [spillway.Settler].
func (unseen) Settle(time.Time, spillway.Ticket, spillway.Outcome) {}

// Admit implements [calls.Throttle]. A throttle that knows of no rejection admits.
func (t *lateThrottle) Admit(now time.Time, call spillway.Call, of throttle.Route) (spillway.Ticket, error) {
	if t.throttle == nil {
		return spillway.Ticket{By: unseen{}, Criticality: call.Criticality}, nil
	}
	return t.throttle.Admit(now, call, of)
}

// Timed implements [calls.Throttle]. Reading the simulated time costs nothing.
func (t *lateThrottle) Timed(spillway.Outcome) bool { return true }

// Limited implements [calls.Throttle].
func (t *lateThrottle) Limited(now time.Time) {
	if t.throttle == nil {
		t.limited = now
	} else {
		t.throttle.Limited(now)
	}
}

// Account implements [calls.Throttle]. It is asked after failures, and soon after.
func (t *lateThrottle) Account(of throttle.Route) string { return t.remember().Account(of) }

// Settle implements [calls.Throttle].
func (t *lateThrottle) Settle(sent, now time.Time, ticket *spillway.Ticket, of throttle.Route, o spillway.Outcome) {
	t.route = of
	if ticket.By == (unseen{}) {
		switch {
		case t.throttle == nil && !o.Informs():
			*ticket = spillway.Ticket{}
		case t.throttle == nil && o.Accepted() && len(t.past) < short:
			t.past = append(t.past, int64(sent.Sub(epoch))<<2|int64(ticket.Criticality.Index()))
			*ticket = spillway.Ticket{}
		default:
			*ticket = t.remember().Unseen(sent, ticket.Criticality)
		}
	}
	if t.throttle != nil {
		t.throttle.Settle(sent, now, ticket, of, o)
	}
}

// Advise implements [calls.Throttle].
func (t *lateThrottle) Advise(now time.Time, class spillway.Criticality, ratio float64) {
	if t.throttle != nil || ratio != 1 {
		t.remember().Advise(now, class, ratio)
	}
}

// remember returns the throttle. If there is none, it makes one, and tells it of the past.
func (t *lateThrottle) remember() *throttle.Routes {
	if t.throttle != nil {
		return t.throttle
	}
	t.throttle, _ = throttle.NewRoutes(*t.config) // was tried once
	for _, p := range t.past {
		at := epoch.Add(time.Duration(p >> 2))
		ticket := t.throttle.Unseen(at, spillway.Criticality(p&3)+spillway.Sheddable)
		t.throttle.Settle(at, at, &ticket, t.route, spillway.OutcomeServed)
	}
	t.past = nil
	if !t.limited.IsZero() {
		t.throttle.Limited(t.limited)
	}
	return t.throttle
}
