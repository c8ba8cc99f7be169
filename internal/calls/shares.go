package calls

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/throttle"
)

// Shares divide the tokens of a [budget.Bucket] among accounts, such as the routes of a backend. An
// account that has taken more than another must leave in the bucket what the other has recently
// asked for:
//
//	leave(a) = sum of asked(b) over all b with taken(b) < taken(a); at least 1 if there are any
//
// So accounts that need few tokens always get them. Accounts that need more than the bucket has get
// equal parts of the rest, and an account that asks alone can use the whole bucket. The numbers
// asked and taken decay with a time constant of one minute.
//
// An account has its own share once a call of it has succeeded. There are at most [MaxShares]; all
// other accounts share one. Successes are recorded only within a minute after an account asked for
// a retry ([Shares.Watches]). Shares are safe for concurrent use. The zero Shares is ready for use;
// with a nil *Shares accounts need not leave anything.
type Shares struct {
	until atomic.Int64 // successes are recorded up to then, in nanoseconds since 1970

	mu sync.Mutex
	// since is the time at which a token counts as 1. A token at a later time counts as more: see
	// unit. So older tokens decay without being touched.
	since    time.Time
	accounts []share // at index 0 is the share of all accounts without their own
	index    map[string]int
}

// A share has the tokens that an account has asked for and taken, weighted by their time: a token
// adds what unit returns at that time.
type share struct {
	name         string
	asked, taken float64
}

// MaxShares is the maximum number of accounts of a [Shares] that have their own share.
const MaxShares = 256

const (
	// sharesFor is the time constant: a route with one failure in half a minute is remembered.
	sharesFor = time.Minute
	// sharesScale is the number of time constants after which all numbers are scaled back.
	sharesScale = 10
	forgotten   = 1. / 16 // tokens; a token has decayed to this after almost three minutes
)

// Ask records that an account asks for a token at the time now. It returns how many tokens the
// account must leave in the bucket.
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

// Took records that an account got the token for which it had asked.
func (s *Shares) Took(now time.Time, account string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.unit(now)
	s.of(account).taken += one
}

// Watches reports whether successes are recorded at the time now.
func (s *Shares) Watches(now time.Time) bool { return s != nil && now.UnixNano() < s.until.Load() }

// Served records at the time now that a call of an account has succeeded. An account that gets its
// own share after a retry takes this retry out of the common share. [throttle.OtherRoutes] is many
// accounts, and keeps the common share.
func (s *Shares) Served(now time.Time, account string) {
	if account == throttle.OtherRoutes {
		return
	}
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

// idle returns the index of an account that has not asked recently, or 0.
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

// unit returns how much one token counts as at the time now: e to the power of the minutes since
// s.since. Times before since count as since.
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
