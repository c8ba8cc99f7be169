package calls

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Shares divide what a [budget.Bucket] has among accounts, such as the routes of a backend: an account that has taken more than another
// leaves in the bucket what the other has asked for recently.
//
//	leave(a) = sum of asked(b) over all accounts b with taken(b) < taken(a); at least 1 if there are any
//
// So accounts that need little always find it, accounts that need more than the bucket has take equal parts of the rest, and an account that
// asks alone has the whole bucket. What was asked and taken is forgotten with a time constant of a minute.
//
// An account has its own place once a call of it has succeeded, and there are [MaxShares]; all others share one. Successes are
// noted only within a minute after a retry was asked for ([Shares.Watches]). It is safe for concurrent use. The zero Shares is
// ready for use, and a nil *Shares leaves nothing.
type Shares struct {
	until atomic.Int64 // nanoseconds: successes are noted

	mu       sync.Mutex
	since    time.Time // what is asked then counts 1, and later more, so that what is older counts less
	accounts []share   // the first one is of all others
	index    map[string]int
}

// A share is what an account has asked for and taken.
type share struct {
	name         string
	asked, taken float64
}

// MaxShares is how many accounts of a [Shares] have their own place.
const MaxShares = 256

const (
	// sharesFor is the time constant: a route with one failure in half a minute is remembered.
	sharesFor = time.Minute
	// sharesScale is after how many time constants the numbers are brought back to the order of 1.
	sharesScale = 10
	forgotten   = 1. / 16 // of a token, which was asked for almost three minutes ago
)

// Ask notes at the time now that an account asks for a token, and returns how many it must leave in the bucket.
func (s *Shares) Ask(now time.Time, account string) (leave float64) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until.Store(now.Add(sharesFor).UnixNano())
	one, own := s.unit(now), s.of(account)
	own.asked += one
	for i := range s.accounts {
		if x := &s.accounts[i]; x.taken < own.taken {
			leave += x.asked
		}
	}
	if leave > forgotten*one {
		leave = max(leave, one)
	}
	return leave / one
}

// Took notes that an account got the token that it had asked for.
func (s *Shares) Took(now time.Time, account string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.unit(now)
	s.of(account).taken += one
}

// Watches reports whether successes are noted at the time now.
func (s *Shares) Watches(now time.Time) bool { return s != nil && now.UnixNano() < s.until.Load() }

// Served notes at the time now that a call of an account has succeeded. An account that gets its place by a retry brings this
// retry along.
func (s *Shares) Served(now time.Time, account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.index[account]; known || len(s.accounts) == 0 {
		return
	}
	at, one := len(s.accounts), s.unit(now)
	if at <= MaxShares {
		s.accounts = append(s.accounts, share{})
	} else if at = s.idle(one); at == 0 {
		return
	}
	delete(s.index, s.accounts[at].name)
	others := &s.accounts[0]
	brings := min(one, others.asked, others.taken)
	others.asked -= brings
	others.taken -= brings
	s.accounts[at] = share{account, brings, brings}
	s.index[account] = at
}

// idle returns the place of an account that has not asked recently, or 0.
func (s *Shares) idle(one float64) int {
	for i := 1; i < len(s.accounts); i++ {
		if s.accounts[i].asked < forgotten*one {
			return i
		}
	}
	return 0
}

// of returns the share of an account.
func (s *Shares) of(account string) *share {
	if s.index == nil {
		s.index, s.accounts = make(map[string]int), make([]share, 1)
	}
	return &s.accounts[s.index[account]]
}

// unit returns what a token counts at the time now. A time that steps back counts as no time.
func (s *Shares) unit(now time.Time) float64 {
	age := max(now.Sub(s.since), 0)
	if age > sharesScale*sharesFor {
		keep := math.Exp(-float64(age) / float64(sharesFor))
		for i := range s.accounts {
			s.accounts[i].asked *= keep
			s.accounts[i].taken *= keep
		}
		s.since, age = now, 0
	}
	return math.Exp(float64(age) / float64(sharesFor))
}
