package retry_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// uses are the ways to use a token up.
var uses = map[string]func(retry.Strategy, retry.Token) error{
	"Refresh": func(s retry.Strategy, t retry.Token) error {
		_, err := s.Refresh(t0, t, overload)
		return err
	},
	"Succeed": func(s retry.Strategy, t retry.Token) error { return s.Succeed(t) },
	"Release": func(s retry.Strategy, t retry.Token) error { return s.Release(t, fault.Failure{}) },
	"Unsent":  func(s retry.Strategy, t retry.Token) error { return s.Release(t, fault.Failure{Unsent: true}) },
}

// TestTokenIsUsedOnce uses a token in each way, and then in each way again: at
// once, and when its state serves another call.
func TestTokenIsUsedOnce(t *testing.T) {
	for first, use := range uses {
		for second, again := range uses {
			b := bucket(1000, 500)
			s := must(retry.NewMongoDB(retry.MongoDBConfig{Budget: b}))
			used := s.Begin(spillway.Call{})
			if err := use(s, used); err != nil {
				t.Errorf("%s: %v", first, err)
			}
			tokens, stats := b.Stats(time.Time{}).Tokens, s.Stats(time.Time{})
			if err := again(s, used); !errors.Is(err, retry.ErrTokenUsed) {
				t.Errorf("%s after %s: %v", second, first, err)
			}
			next := s.Begin(spillway.Call{})
			if err := again(s, used); !errors.Is(err, retry.ErrTokenUsed) {
				t.Errorf("%s after %s and Begin: %v", second, first, err)
			}
			wantTokens(t, b, tokens)
			if s.Stats(time.Time{}) != stats {
				t.Errorf("%s after %s counted: %+v", second, first, s.Stats(time.Time{}))
			}
			if err := s.Succeed(next); err != nil {
				t.Errorf("the call after a misuse: %v", err)
			}
		}
	}
}

func TestTokenOfAnother(t *testing.T) {
	for name, use := range uses {
		b := bucket(1000, 500)
		c := retry.MongoDBConfig{Budget: b}
		s, other := must(retry.NewMongoDB(c)), must(retry.NewMongoDB(c))
		token := other.Begin(spillway.Call{})
		for _, foreign := range []retry.Token{token, {}} {
			if err := use(s, foreign); !errors.Is(err, retry.ErrForeignToken) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantTokens(t, b, 500)
		if err := use(other, token); err != nil {
			t.Errorf("%s by the owner after a stranger: %v", name, err)
		}
	}
}

// TestTokenRace has goroutines use the same tokens at once: one of them wins.
func TestTokenRace(t *testing.T) {
	b := bucket(1000, 500)
	s := must(retry.NewMongoDB(retry.MongoDBConfig{Budget: b}))
	for range 200 {
		token := s.Begin(spillway.Call{})
		var won atomic.Int32
		var wg sync.WaitGroup
		for _, use := range uses {
			wg.Go(func() {
				switch err := use(s, token); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, retry.ErrTokenUsed):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d uses of one token succeeded", won.Load())
		}
	}
}

// TestTokenSurvivesGC: states may be dropped by the pool at any time.
func TestTokenSurvivesGC(t *testing.T) {
	s := must(retry.NewMongoDB(retry.MongoDBConfig{}))
	used := s.Begin(spillway.Call{})
	s.Succeed(used)
	runtime.GC()
	runtime.GC()
	token := s.Begin(spillway.Call{})
	if err := s.Succeed(used); !errors.Is(err, retry.ErrTokenUsed) {
		t.Errorf("the old token: %v", err)
	}
	if err := s.Succeed(token); err != nil {
		t.Errorf("the new token: %v", err)
	}
}

func TestZeroToken(t *testing.T) {
	var token retry.Token
	if token.Delay() != 0 || token.Attempt().Number != 0 {
		t.Errorf("the zero token has delay %v and attempt %+v", token.Delay(), token.Attempt())
	}
}

func TestStateData(t *testing.T) {
	var i retry.TokenSource
	st, _ := i.Claim(i.Begin(spillway.Call{Key: "users"}, 0))
	st.Data = "mine"
	st, _ = i.Claim(st.Next(0))
	if st.Data != "mine" || st.Number != 1 || st.Call.Key != "users" {
		t.Errorf("after Next: %+v", st)
	}
	st.End()
	for range 10 { // of which one at least gets the same State
		if st, _ := i.Claim(i.Begin(spillway.Call{}, 0)); st.Data != nil || st.Number != 0 || st.Call.Key != "" {
			t.Fatalf("the next call begins with %+v", st)
		}
	}
}
