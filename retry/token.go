package retry

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// The errors of a [Token] in the wrong hands.
var (
	// ErrTokenUsed says that the token was given to the strategy before.
	ErrTokenUsed = errors.New("retry: the token was used before")
	// ErrForeignToken says that the token was not handed out by this strategy.
	ErrForeignToken = errors.New("retry: the token is not of this strategy")
)

// A Token represents one attempt of one call. It is a plain value and used up
// when it is given back to the [Strategy] that handed it out. The zero Token belongs
// to no strategy.
type Token struct {
	state      *State
	generation uint64
	delay      time.Duration
}

// Delay returns how long to wait before the attempt is made.
func (t Token) Delay() time.Duration { return t.delay }

// Attempt returns what the attempt may know and say. It is valid until t is used.
func (t Token) Attempt() *Attempt {
	if t.state == nil {
		return new(Attempt)
	}
	return &t.state.Attempt
}

// An Attempt is what the code that makes an attempt shares with the strategy. It
// is valid only while the attempt lasts, and not safe for concurrent use.
type Attempt struct {
	// Number is 0 for the first attempt, 1 for its first retry, and so on.
	Number int
	// Leave is how many tokens the retry that follows the attempt must leave in the budget, for calls that need fewer retries
	// (package egress sets it). It has no effect for a budget without a method Level, and more than half of what the budget can hold need not
	// be left.
	Leave float64
	// BeforeRetry, if not nil, is called once it is certain that another attempt follows this one, before the wait for it, and
	// not after the last attempt. It is the place to release what this attempt still holds, such as a connection. The next
	// attempt begins with nil.
	BeforeRetry func(wait time.Duration)

	endpoint      string
	deprioritized []string
}

// Use says at which endpoint the attempt is made. If the attempt fails, later
// ones of the call avoid it where they can, and budgets that keep endpoints apart
// charge it. The last Use of an attempt counts.
func (a *Attempt) Use(endpoint string) { a.endpoint = endpoint }

// Deprioritized returns the endpoints that attempts of this call failed at, for
// server selection to avoid if there are others. It must not be changed or kept.
func (a *Attempt) Deprioritized() []string { return a.deprioritized }

// avoid deprioritises the endpoint of the attempt.
func (a *Attempt) avoid() {
	if a.endpoint != "" && !slices.Contains(a.deprioritized, a.endpoint) {
		a.deprioritized = append(a.deprioritized, a.endpoint)
	}
}

// A State is the state of one call in a strategy: the implementation of a Strategy gets it in
// exchange for a Token from [TokenSource.Claim], is its only owner then, and returns it by
// Next or End.
type State struct {
	// Attempt is that of the token that was claimed.
	Attempt
	// Call is the argument of Begin.
	Call spillway.Call
	// Data is for the implementation. It is nil after Begin.
	Data any

	issuer     *TokenSource
	generation atomic.Uint64

	// For the engine of this package:
	overloaded bool    // an attempt met an overload
	elsewhere  bool    // the attempt is for another task than the last
	paid       float64 // for the attempt
	payer      string  // out of whose account
	from       Budget  // of which budget
}

// Next returns the Token of the next attempt.
func (s *State) Next(delay time.Duration) Token {
	s.Number++
	s.endpoint, s.BeforeRetry, s.Leave = "", nil, 0
	return Token{s, s.generation.Load(), delay}
}

// End ends the call. The State must not be used any more.
func (s *State) End() {
	s.BeforeRetry = nil // with all that it holds
	s.issuer.pool.Put(s)
}

// A TokenSource issues the tokens of a [Strategy] and checks tokens that are passed back. It
// is the part that all strategies have in common, for use in new ones. The zero TokenSource is
// ready for use; it must not be copied, and is safe for concurrent use.
//
// States are used again after a call has ended. Each has a generation, which
// grows whenever a Token is claimed and is never reset: a Token of an ended call
// is recognised although its State now serves another.
type TokenSource struct{ pool sync.Pool }

// Begin returns the Token of the first attempt of call, to be made after delay.
func (i *TokenSource) Begin(call spillway.Call, delay time.Duration) Token {
	return i.begin(&call, delay)
}

// begin is Begin without another copy of the call.
func (i *TokenSource) begin(call *spillway.Call, delay time.Duration) Token {
	s := i.state()
	s.Call = *call
	return Token{s, s.generation.Load(), delay}
}

// state returns a State, but for its Call, as it is when a call begins.
func (i *TokenSource) state() *State {
	s, ok := i.pool.Get().(*State)
	if !ok {
		return &State{issuer: i}
	}
	s.Data = nil
	s.Attempt = Attempt{deprioritized: s.deprioritized[:0]}
	s.overloaded, s.elsewhere, s.paid = false, false, 0
	return s
}

// Claim uses t up and returns the State of its call, or [ErrTokenUsed] or
// [ErrForeignToken].
func (i *TokenSource) Claim(t Token) (*State, error) {
	switch {
	case t.state == nil || t.state.issuer != i:
		return nil, ErrForeignToken
	case !t.state.generation.CompareAndSwap(t.generation, t.generation+1):
		return nil, ErrTokenUsed
	}
	return t.state, nil
}
