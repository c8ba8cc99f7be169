package retry

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// These are the errors for a [Token] that a [Strategy] does not accept.
var (
	// ErrTokenUsed says that the token was passed to the strategy before.
	ErrTokenUsed = errors.New("retry: the token was used before")
	// ErrForeignToken says that another strategy has made the token.
	ErrForeignToken = errors.New("retry: the token is not of this strategy")
)

// A Token represents one attempt of one call. It is a plain value. It is used up when it is passed
// to the [Strategy] that has made it. The zero Token belongs to no strategy.
type Token struct {
	state      *State
	generation uint64
	delay      time.Duration
}

// Delay returns how long to wait before the attempt.
func (t Token) Delay() time.Duration { return t.delay }

// Attempt returns the data that the attempt shares with the strategy. It is valid until t is used.
func (t Token) Attempt() *Attempt {
	if t.state == nil {
		return new(Attempt)
	}
	return &t.state.Attempt
}

// An Attempt is the data that the code of an attempt shares with the strategy. It is valid only
// during the attempt, and not safe for concurrent use.
type Attempt struct {
	// Number is 0 for the first attempt, 1 for its first retry, and so on.
	Number int
	// Leave is how many tokens a retry after this attempt must leave in the budget, for calls that
	// need fewer retries. Package egress sets it. It has no effect for a budget without a method
	// Level. A retry need not leave more than half of the budget's capacity.
	Leave float64
	// BeforeRetry, if not nil, is called before the wait for another attempt, once that attempt is
	// certain. It is not called after the last attempt. Use it to release what this attempt still
	// holds, such as a connection. It is nil again for the next attempt.
	BeforeRetry func(wait time.Duration)

	endpoint      string
	deprioritized []string
}

// Use says at which endpoint the attempt is made. If the attempt fails, later attempts of the call
// avoid that endpoint if they can, and budgets with separate endpoints charge it. Only the last Use
// of an attempt counts.
func (a *Attempt) Use(endpoint string) { a.endpoint = endpoint }

// Deprioritized returns the endpoints at which attempts of this call have failed. Server selection
// should avoid them if there are others. The slice must not be changed or kept.
func (a *Attempt) Deprioritized() []string { return a.deprioritized }

// avoid deprioritises the endpoint of the attempt.
func (a *Attempt) avoid() {
	if a.endpoint != "" && !slices.Contains(a.deprioritized, a.endpoint) {
		a.deprioritized = append(a.deprioritized, a.endpoint)
	}
}

// A State is the state of one call in a strategy. The implementation of a Strategy gets it for a
// Token from [TokenSource.Claim], and is its only owner until it calls Next or End.
type State struct {
	// Attempt belongs to the token that was claimed.
	Attempt
	// Call is the argument of Begin.
	Call spillway.Call
	// Data is for the implementation of the Strategy. It is nil after Begin.
	Data any

	issuer     *TokenSource
	generation atomic.Uint64

	// These fields are for the engine of this package.
	overloaded bool    // whether an attempt has met an overload
	elsewhere  bool    // whether the attempt goes to another task than the last one
	paid       float64 // tokens that were paid for the attempt
	payer      string  // key of the account that has paid
	from       Budget  // budget that has paid
}

// Next returns the Token of the next attempt.
func (s *State) Next(delay time.Duration) Token {
	s.Number++
	s.endpoint, s.BeforeRetry, s.Leave = "", nil, 0
	return Token{s, s.generation.Load(), delay}
}

// End ends the call. The State must not be used after that.
func (s *State) End() {
	s.BeforeRetry = nil // this also frees what the func refers to
	s.issuer.pool.Put(s)
}

// A TokenSource makes the tokens of a [Strategy], and checks tokens that are passed back.
// Strategies outside of this package need one, too. The zero TokenSource is ready for use. It must
// not be copied, and is safe for concurrent use.
//
// States are reused after a call has ended. Each State has a generation, which rises whenever a
// Token is claimed and is never reset. So a Token of an ended call is recognized although its State
// now serves another call.
type TokenSource struct{ pool sync.Pool }

// Begin returns the Token of the first attempt of call, to be made after delay.
func (i *TokenSource) Begin(call spillway.Call, delay time.Duration) Token {
	return i.begin(&call, delay)
}

// begin does the same as Begin, without another copy of the call.
func (i *TokenSource) begin(call *spillway.Call, delay time.Duration) Token {
	s := i.state()
	s.Call = *call
	return Token{s, s.generation.Load(), delay}
}

// state returns a State for a new call, without its Call.
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

// Claim uses up t and returns the State of its call. The error is [ErrTokenUsed] or
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
