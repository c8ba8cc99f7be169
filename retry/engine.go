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
	// Whether.
	attempts          int  // of a call that has met no overload, or untilDeadline
	overloadAttempts  int  // of a call that has met one
	strict            bool // an overload that may be unsafe is not retried, idempotent or not
	noReads, noWrites bool
	stay              bool // do not deprioritise an overloaded endpoint

	// When.
	backoff, overloadBackoff Backoff
	exponent                 int // of the first retry
	hint                     hint
	maxRetryAfter            time.Duration // negative: any
	elsewhere                Backoff       // after an overload of one task only; zero: as after any overload

	// At whose expense: prices of a retry, by what it follows; then earnings.
	cost, overloadCost, timeoutCost float64
	first                           float64 // the first attempt succeeds
	firstFailed                     float64 // the first attempt was sent and failed
	retried                         float64 // a retry succeeds
	healthy                         float64 // a retry fails, but not for overload
	refund                          bool    // a retry that succeeds gets its price back
}

// untilDeadline, in place of a number of attempts, leaves it to the deadline of
// the call to end it.
const untilDeadline = -1

// A hint says how a strategy reads [fault.Failure.RetryAfter].
type hint uint8

const (
	hintLeast hint = iota // the least delay
	hintClamp             // the delay, within 5 s after that of the backoff
	hintBase              // the base of the backoff after an overload
)

// engine is what the strategies share: it applies the rules. It has all methods
// of a Strategy but Begin, since one that is promoted copies its large argument
// once more.
type engine struct {
	rules

	issuer TokenSource
	budget Budget
	quota  Budget // pays for retries of customers over their quota; nil: as budget
	rand   func() float64

	others tokens.Level // evidence that other tasks serve what one rejects

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

// The evidence that other tasks serve the calls that one rejects, in the numbers of MongoDB's
// adaptive retries: if all tasks are overloaded, or there is only one, retries at once settle
// at one in ten served calls, and all other calls wait as if no scope were known. The capacity
// is the number of retries that must fail before that shows. A retry costs nothing until it
// fails: one task may reject many calls at the same time, and the other tasks serve them all.
// Where none does, as many fail at the same time. They leave a debt, of ten capacities at most:
// a thousand served calls pay it.
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

// failed settles the accounts of an attempt that failed with f.
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

// of returns the budget that f counts for. A customer over its quota has a separate budget:
// its rejections must neither use up the retries of the others nor let them retry more.
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

// decide returns the delay of the retry that follows f, which is then paid for,
// or why there is to be none.
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

// final returns what forbids a retry whenever it were made, or ReasonOther.
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

// limit returns how many attempts the call may have in all.
func (e *engine) limit(s *State) int {
	switch {
	case s.overloaded:
		return e.overloadAttempts
	case e.attempts != untilDeadline:
		return e.attempts
	case s.Call.Deadline.IsZero():
		return 2 // nothing else would
	default:
		return math.MaxInt
	}
}

// goesElsewhere reports whether the retry that follows f is for another task, so that the hint
// of the task that rejected does not delay it.
func (e *engine) goesElsewhere(f fault.Failure) bool {
	return e.elsewhere.Base > 0 && f.Overload && f.Scope == fault.ScopeTask && e.others.Load() >= othersCost
}

// delay returns how long to wait before the retry that follows f.
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

// add returns a+b, or the longest duration there is.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// charge pays for the retry that follows f, or returns why not.
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

// left reports whether a retry at this cost leaves in the budget what it must.
func (s *State) left(cost float64) (left, capacity float64, ok bool) {
	budget, ok := s.from.(leveled)
	if s.Leave <= 0 || !ok {
		return 0, 0, true
	}
	left, capacity = budget.Level()
	return left, capacity, left-cost >= min(s.Leave, capacity/2)
}

// leveled is a Budget of all endpoints together that can say how much it holds.
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

// Stats says what a strategy of this package has decided since the start.
type Stats struct {
	RetriesTotal    uint64          // granted
	UnsentTotal     uint64          // granted, and given back unsent
	NotRetriedTotal [Reasons]uint64 // calls that ended without a retry, by [Reason]
}

// Stats returns what was decided so far.
func (e *engine) Stats(now time.Time) Stats {
	s := Stats{RetriesTotal: e.retries.Load(), UnsentTotal: e.unsent.Load()}
	for i := range s.NotRetriedTotal {
		s.NotRetriedTotal[i] = e.rejections[i].Load()
	}
	return s
}
