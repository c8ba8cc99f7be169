package retry_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

func TestBadConfig(t *testing.T) {
	standard := func(c retry.AWSStandardConfig) error { _, err := retry.NewAWSStandard(c); return err }
	overload := func(c retry.MongoDBConfig) error { _, err := retry.NewMongoDB(c); return err }
	budgeted := func(c retry.BudgetedConfig) error { _, err := retry.NewBudgeted(c); return err }
	for _, test := range []struct {
		err  error
		want string
	}{
		{standard(retry.AWSStandardConfig{Revision: "3.0"}), `Revision is "3.0", must be "2.1" or "2.0"`},
		{standard(retry.AWSStandardConfig{MaxAttempts: -1}), "MaxAttempts is -1, must be 0 or more"},
		{standard(retry.AWSStandardConfig{Base: -1}), "Base is -1ns, must be 0 or more"},
		{standard(retry.AWSStandardConfig{OverloadBase: -time.Second}), "OverloadBase is -1s"},
		{standard(retry.AWSStandardConfig{MaxBackoff: -1}), "MaxBackoff is -1ns"},
		{standard(retry.AWSStandardConfig{Prices: retry.Prices{Retry: math.NaN()}}), "Prices.Retry is NaN"},
		{standard(retry.AWSStandardConfig{Prices: retry.Prices{Overload: math.Inf(1)}}), "Prices.Overload is +Inf, must be at most 1e9"},
		{standard(retry.AWSStandardConfig{Prices: retry.Prices{Timeout: 2e9}}), "Prices.Timeout is 2e+09"},
		{standard(retry.AWSStandardConfig{Prices: retry.Prices{Success: math.NaN()}}), "Prices.Success is NaN"},
		{overload(retry.MongoDBConfig{Revision: "2025"}), `Revision is "2025", must be "2026-02" or "2026-07"`},
		{overload(retry.MongoDBConfig{Backoff: retry.Backoff{Base: -1}}), "Backoff.Base is -1ns, must be 0 or more"},
		{budgeted(retry.BudgetedConfig{MaxAttempts: -2}), "MaxAttempts is -2"},
		{budgeted(retry.BudgetedConfig{Ratio: math.NaN()}), "Ratio is NaN"},
		{budgeted(retry.BudgetedConfig{Backoff: retry.Backoff{Max: -1}}), "Backoff.Max is -1ns"},
	} {
		if test.err == nil || !strings.HasPrefix(test.err.Error(), "retry: "+test.want) {
			t.Errorf("%v, want an error with %q", test.err, test.want)
		}
	}
}

func earned(capacity, credit float64) *budget.Bucket {
	return must(budget.New(budget.Config{Capacity: capacity, Empty: true, Credit: credit}))
}

// TestOwnBudget: the bucket that a strategy makes for itself behaves as one of
// package budget with the same numbers.
func TestOwnBudget(t *testing.T) {
	for _, test := range []struct {
		name     string
		own, ref retry.Strategy
	}{
		{"Standard", must(retry.NewAWSStandard(retry.AWSStandardConfig{})), must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: bucket(500, 500)}))},
		{"Budgeted", must(retry.NewBudgeted(retry.BudgetedConfig{})), must(retry.NewBudgeted(retry.BudgetedConfig{Budget: earned(100, 3)}))},
		{"Budgeted .3", must(retry.NewBudgeted(retry.BudgetedConfig{Ratio: .3})), must(retry.NewBudgeted(retry.BudgetedConfig{Ratio: .3, Budget: earned(300, 9)}))},
	} {
		rejected := 0
		for i := range 6000 {
			own, ref := test.own.Begin(spillway.Call{}), test.ref.Begin(spillway.Call{})
			if i > 1000 && i < 4000 && i%9 > 0 {
				test.own.Succeed(own)
				test.ref.Succeed(ref)
				continue
			}
			f := overload
			if i%2 == 0 {
				f = fault.Failure{Safety: fault.RetrySafe, Timeout: true}
			}
			for {
				var errOwn, errRef error
				own, errOwn = test.own.Refresh(t0, own, f)
				ref, errRef = test.ref.Refresh(t0, ref, f)
				if (errOwn == nil) != (errRef == nil) || errOwn != nil && errOwn.Error() != errRef.Error() {
					t.Fatalf("%s, call %d: %v, want %v", test.name, i, errOwn, errRef)
				}
				if errOwn != nil {
					if strings.Contains(errOwn.Error(), "budget") {
						rejected++
					}
					break
				}
			}
		}
		if rejected == 0 {
			t.Errorf("%s: the budget never bound", test.name)
		}
	}
}

// TestPrices: each kind of failure has its own, and a negative one is none.
func TestPrices(t *testing.T) {
	b := bucket(1000, 500)
	s := must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: b, Prices: retry.Prices{Retry: 2, Overload: 3, Timeout: -1, Success: 4}}))
	for _, step := range []struct {
		f    fault.Failure
		want float64
	}{
		{fault.Failure{Safety: fault.RetrySafe}, 498},
		{fault.Failure{Safety: fault.RetrySafe, Overload: true, Timeout: true}, 495},
		{fault.Failure{Safety: fault.RetrySafe, Timeout: true}, 495},
	} {
		token := s.Begin(spillway.Call{})
		if reason, _ := refresh(s, &token, step.f); reason != retry.ReasonOther {
			t.Errorf("%+v: %v", step.f, reason)
		}
		wantTokens(t, b, step.want)
	}
	s.Succeed(s.Begin(spillway.Call{}))
	wantTokens(t, b, 499)
}

// TestBudgetKeys: a retry is charged to the endpoint that failed, and paid back
// to where it was charged.
func TestBudgetKeys(t *testing.T) {
	var book ledger
	s := must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: &book}))
	token := s.Begin(spillway.Call{Key: "users"})
	token.Attempt().Use("10.0.0.1")
	refresh(s, &token, notOverload)
	refresh(s, &token, notOverload) // at an endpoint it does not name
	token.Attempt().Use("10.0.0.2")
	s.Succeed(token)
	token = s.Begin(spillway.Call{Key: "users"})
	token.Attempt().Use("10.0.0.3")
	s.Succeed(token)
	want := "10.0.0.1 -14, users -14, users +14, 10.0.0.3 +1"
	if got := strings.Join(book.entries, ", "); got != want {
		t.Errorf("accounts: %s\nwant %s", got, want)
	}
}

// A ledger pays always and writes it down.
type ledger struct{ entries []string }

func (l *ledger) Withdraw(_ time.Time, key string, tokens float64) (left, capacity float64, ok bool) {
	l.entries = append(l.entries, fmt.Sprintf("%s %+g", key, -tokens))
	return 0, 0, true
}

func (l *ledger) Deposit(key string, tokens float64) {
	l.entries = append(l.entries, fmt.Sprintf("%s %+g", key, tokens))
}
