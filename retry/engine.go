package retry

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/tokens"
)

// rules are the parameters in which strategies differ.
type rules struct {
	// Whether a call is retried.
	attempts          int  // maximum number for a call that has met no overload, or untilDeadline
	overloadAttempts  int  // maximum number for a call that has met an overload
	strict            bool // whether overloads are retried only if safe, even for idempotent calls
	noReads, noWrites bool // whether reads, or writes, are not retried
	stay              bool // whether later attempts may use endpoints that were overloaded

	// When it is retried.
	backoff, overloadBackoff Backoff
	exponent                 int // exponent of the backoff before the first retry
	hint                     hint
	maxRetryAfter            time.Duration // negative means no limit
	// elsewhere is the backoff after an overload of one task only. Zero means overloadBackoff.
	elsewhere Backoff

	// What a retry costs after each kind of failure, and what an attempt earns, in tokens.
	cost, overloadCost, timeoutCost float64
	first                           float64 // earned by a first attempt that succeeds
	firstFailed                     float64 // earned by a first attempt that was sent and failed
	retried                         float64 // earned by a retry that succeeds
	healthy                         float64 // earned by a retry that fails, but not for overload
	refund                          bool    // whether a retry that succeeds gets its cost back
}

// untilDeadline as the number of attempts means that only the deadline of the call limits them.
const untilDeadline = -1

// A hint says how a strategy uses [fault.Failure.RetryAfter].
type hint uint8

const (
	hintLeast hint = iota // the delay is at least the hint
	hintClamp             // the delay is the hint, at least the backoff and at most 5 s above it
	hintBase              // the hint is the base of the backoff after an overload
)

// engine applies the rules for all strategies. It has all methods of a Strategy except Begin: a
// promoted method would copy its large argument once more.
type engine struct {
	rules

	issuer TokenSource
	budget Budget
	quota  Budget // pays for retries of customers over their quota; nil: budget does
	rand   func() float64

	others tokens.Level // evidence that other tasks serve what one task rejects; may be negative

	retries, unsent atomic.Uint64
	rejections      [Reasons]atomic.Uint64
}

func (e *engine) configure(r rules, b Budget, random func() float64) {
	if random == nil {
		random = rand.Float64
	}
	e.rules, e.budget, e.rand = r, b, random
	e.others.Set(othersMax)
}

// These numbers of engine.others measure whether other tasks serve the calls that one task rejects.
// The numbers are those of MongoDB's adaptive retries: if all tasks are overloaded, or there is
// only one, immediate retries settle at one in ten served calls, and all other calls wait as if no
// scope were known. The capacity is the number of retries that must fail before this shows. A retry
// costs nothing until it fails, because one task may reject many calls at the same time, and the
// other tasks serve them all. If no task serves them, all these retries fail at the same time. They
// leave a debt of at most ten capacities, which a thousand served calls pay.
const (
	othersDebt   = 10 * othersMax
	othersMax    = 10 * tokens.Unit
	othersCost   = tokens.Unit
	othersServed = tokens.Unit / 10
)

// Refresh implements [Strategy]. Its errors are [NotRetriedError]s.
func (e *engine) Refresh(now time.Time, t Token, f fault.Failure) (Token, error) {
	s, err := e.issuer.Claim(t)
	if err != nil {
		return Token{}, err
	}
	e.failed(s, f)
	delay, rejected := e.decide(now, s, f)
	if rejected != nil {
		e.rejections[rejected.Reason].Add(1)
		s.End()
		return Token{}, rejected
	}
	e.retries.Add(1)
	if !e.stay || !f.Overload {
		s.avoid()
	}
	return s.Next(delay), nil
}

// Succeed implements [Strategy].
func (e *engine) Succeed(t Token) error {
	s, err := e.issuer.Claim(t)
	if err != nil {
		return err
	}
	e.others.Add(othersServed, othersMax)
	switch {
	case s.Number == 0:
		e.deposit(s.account(), e.first)
	case e.refund:
		e.deposit(s.payer, s.paid)
	default:
		e.deposit(s.account(), e.retried)
	}
	s.End()
	return nil
}

// Release implements [Strategy].
func (e *engine) Release(t Token, f fault.Failure) error {
	s, err := e.issuer.Claim(t)
	if err != nil {
		return err
	}
	e.failed(s, f)
	s.End()
	return nil
}

// failed updates the budgets after an attempt that failed with f.
func (e *engine) failed(s *State, f fault.Failure) {
	if s.elsewhere && !f.Unsent && !f.Canceled {
		e.others.Owe(othersCost, othersDebt)
	}
	switch {
	case f.Unsent:
		if s.Number > 0 {
			e.unsent.Add(1)
		}
		if s.paid > 0 {
			s.from.Deposit(s.payer, s.paid)
		}
	case s.Number == 0 && e.firstFailed > 0 && !f.Unanswered && !f.Canceled:
		e.of(f).Deposit(s.account(), e.firstFailed)
	case s.Number == 0:
	case !f.Overload && !f.Canceled:
		e.deposit(s.account(), e.healthy)
	}
	s.paid = 0
}

// of returns the budget that pays after the failure f. Customers over their quota have a separate
// budget: their rejections must neither use up the retries of others nor allow them more.
func (e *engine) of(f fault.Failure) Budget {
	if e.quota != nil && f.OverQuota() {
		return e.quota
	}
	return e.budget
}

func (e *engine) deposit(key string, tokens float64) {
	if tokens > 0 {
		e.budget.Deposit(key, tokens)
	}
}

// account returns the key under which the attempt is charged.
func (s *State) account() string {
	if s.endpoint != "" {
		return s.endpoint
	}
	return s.Call.Key
}

// decide returns the delay of the retry after f, and pays for it; or it returns why there is no
// retry.
func (e *engine) decide(now time.Time, s *State, f fault.Failure) (time.Duration, *NotRetriedError) {
	s.overloaded = s.overloaded || f.Overload
	s.elsewhere = e.goesElsewhere(f)
	if reason := e.final(s, f); reason != ReasonOther {
		return 0, rejection(reason)
	}
	if e.hint == hintLeast && e.maxRetryAfter >= 0 && f.HasRetryAfter && f.RetryAfter > e.maxRetryAfter && !s.elsewhere {
		return 0, &NotRetriedError{Reason: ReasonRetryAfter, RetryAfter: f.RetryAfter}
	}
	delay := e.delay(s, f)
	if d := s.Call.Deadline; !d.IsZero() && !now.Add(delay).Before(d) {
		return 0, &NotRetriedError{Reason: ReasonDeadline, Delay: delay, RetryAfter: f.RetryAfter}
	}
	return delay, e.charge(now, s, f, delay)
}

// final returns the reason that forbids a retry at any time, or ReasonOther if there is none.
func (e *engine) final(s *State, f fault.Failure) Reason {
	switch {
	case f.Unsent && f.Safety != fault.RetrySafe:
		return ReasonUnsent
	case f.Canceled:
		return ReasonCanceled
	case f.DontRetry:
		return ReasonDontRetry
	case !f.Retryable(idempotent(&s.Call) && !(e.strict && f.Overload)):
		return ReasonNotRetryable
	case e.noReads && s.Call.Kind != spillway.KindWrite, e.noWrites && s.Call.Kind != spillway.KindRead:
		return ReasonDisabled
	case e.limit(s) <= 1:
		return ReasonDisabled
	case s.Number+1 >= e.limit(s):
		return ReasonAttempts
	default:
		return ReasonOther
	}
}

// limit returns the maximum number of attempts of the call.
func (e *engine) limit(s *State) int {
	switch {
	case s.overloaded:
		return e.overloadAttempts
	case e.attempts != untilDeadline:
		return e.attempts
	case s.Call.Deadline.IsZero():
		return 2 // the call has no deadline that would limit them
	default:
		return math.MaxInt
	}
}

// goesElsewhere reports whether the retry after f goes to another task, so that the hint of the
// task that rejected does not delay it.
func (e *engine) goesElsewhere(f fault.Failure) bool {
	return e.elsewhere.Base > 0 && f.Overload && f.Scope == fault.ScopeTask && e.others.Load() >= othersCost
}

// delay returns how long to wait before the retry after f.
func (e *engine) delay(s *State, f fault.Failure) time.Duration {
	b, u := e.backoff, e.rand()
	if s.elsewhere {
		return e.elsewhere.Delay(s.Number, u)
	}
	if f.Overload {
		b = e.overloadBackoff
	}
	n := s.Number + e.exponent
	switch hinted := f.HasRetryAfter && f.RetryAfter > 0; {
	case e.hint == hintClamp && f.HasRetryAfter:
		t := b.Delay(n, u)
		return min(max(f.RetryAfter, t), add(t, 5*time.Second))
	case e.hint == hintLeast && hinted:
		return add(f.RetryAfter, scale(max(b.Ceiling(n), f.RetryAfter/10), u))
	case e.hint == hintBase && hinted && f.Overload:
		b.Base = f.RetryAfter
	}
	return b.Delay(n, u)
}

// add returns a+b, or the longest possible duration if that is less.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// charge pays for the retry after f, or returns why it cannot.
func (e *engine) charge(now time.Time, s *State, f fault.Failure, delay time.Duration) *NotRetriedError {
	cost := e.price(f)
	if cost == 0 {
		return nil
	}
	s.payer, s.from = s.account(), e.of(f)
	left, capacity, ok := s.left(cost)
	if ok {
		left, capacity, ok = s.from.Withdraw(now, s.payer, cost)
	}
	if !ok {
		rejected := &NotRetriedError{Reason: ReasonBudget, Tokens: left, Capacity: capacity, Cost: cost}
		if s.Call.LongPoll {
			rejected.LongPollDelay = delay
		}
		return rejected
	}
	s.paid = cost
	return nil
}

// left reports whether the budget still has the tokens of Leave after a retry at this cost. It also
// returns the budget's tokens and their maximum.
func (s *State) left(cost float64) (left, capacity float64, ok bool) {
	budget, ok := s.from.(leveled)
	if s.Leave <= 0 || !ok {
		return 0, 0, true
	}
	left, capacity = budget.Level()
	return left, capacity, left-cost >= min(s.Leave, capacity/2)
}

// leveled is a Budget with one level for all endpoints, which it can return.
type leveled interface {
	Level() (left, capacity float64)
}

func (e *engine) price(f fault.Failure) float64 {
	switch {
	case f.Overload:
		return e.overloadCost
	case f.Timeout:
		return e.timeoutCost
	default:
		return e.cost
	}
}

// Stats counts what a strategy of this package has decided since the start.
type Stats struct {
	RetriesTotal    uint64          // retries that were granted
	UnsentTotal     uint64          // retries that were granted, but not sent
	NotRetriedTotal [Reasons]uint64 // calls that ended without a retry, by [Reason]
}

// Stats returns the counts of e.
func (e *engine) Stats(now time.Time) Stats {
	s := Stats{RetriesTotal: e.retries.Load(), UnsentTotal: e.unsent.Load()}
	for i := range s.NotRetriedTotal {
		s.NotRetriedTotal[i] = e.rejections[i].Load()
	}
	return s
}
