package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// overloadedError is how a transport says that the backend was overloaded.
type overloadedError struct{}

func (overloadedError) Error() string             { return "503 Service Unavailable" }
func (overloadedError) Throttle() bool            { return true }
func (overloadedError) RetrySafety() fault.Safety { return fault.RetrySafe }

// The first two attempts are rejected by the backend, the third one succeeds.
func ExampleDo() {
	strategy, err := retry.NewAWSStandard(retry.AWSStandardConfig{OverloadBase: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = retry.Do(context.Background(), strategy, spillway.Call{Key: "users"}, func(_ context.Context, a *retry.Attempt) error {
		if a.Number < 2 {
			return overloadedError{}
		}
		fmt.Println("answered at attempt", a.Number)
		return nil
	})
	fmt.Println(err)
	// Output:
	// answered at attempt 2
	// <nil>
}

// A rejection says where it was made and why, and wraps the backend's last answer.
func ExampleError() {
	empty, err := budget.New(budget.Config{Empty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	strategy, err := retry.NewAWSStandard(retry.AWSStandardConfig{Budget: empty})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = retry.Do(context.Background(), strategy, spillway.Call{}, func(context.Context, *retry.Attempt) error {
		return overloadedError{}
	})
	fmt.Println(err)
	if stopped, ok := errors.AsType[*retry.Error](err); ok {
		fmt.Println("reason:", stopped.Reason)
	}
	fmt.Println("answer kept:", errors.Is(err, overloadedError{}))
	// Output:
	// retry: gave up after 1 attempt: not retried: retry budget exhausted: 0 of 500 tokens left, a retry costs 5 (it refills with later calls): last error: 503 Service Unavailable
	// reason: budget
	// answer kept: true
}

// MongoDB's policy with adaptive retries: a bucket of 1000 tokens, and another
// server for each retry.
func ExampleMongoDB() {
	tokens, err := budget.New(budget.Config{Capacity: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	strategy, err := retry.NewMongoDB(retry.MongoDBConfig{
		Budget:  tokens,
		Backoff: retry.Backoff{Base: time.Millisecond, Max: time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	servers := []string{"a", "b", "c"}
	err = retry.Do(context.Background(), strategy, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
		server := servers[len(a.Deprioritized())]
		a.Use(server)
		fmt.Println("send to", server)
		if server != "c" {
			return overloadedError{}
		}
		return nil
	})
	fmt.Println(err, tokens.Stats(time.Time{}).Tokens)
	// Output:
	// send to a
	// send to b
	// send to c
	// <nil> 999.1
}

// DynamoDB's clients make four attempts and begin with 25 ms.
func ExampleAWSStandard() {
	strategy, err := retry.NewAWSStandard(retry.AWSStandardConfig{
		MaxAttempts: 4,
		Base:        25 * time.Millisecond,
		Rand:        func() float64 { return 0.99 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for t := strategy.Begin(spillway.Call{}); err == nil; {
		if t, err = strategy.Refresh(now, t, fault.Failure{Safety: fault.RetrySafe}); err == nil {
			fmt.Println("wait", t.Delay())
		}
	}
	fmt.Println(err)
	// Output:
	// wait 24.75ms
	// wait 49.5ms
	// wait 99ms
	// not retried: no more attempts are allowed (each has failed; see the last error)
}

// A thousand calls meet a backend that rejects everything. They are sent 1100
// times, not 3000 times.
func ExampleBudgeted() {
	strategy, err := retry.NewBudgeted(retry.BudgetedConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := 0
	for range 1000 {
		_ = retry.Do(context.Background(), strategy, spillway.Call{}, func(context.Context, *retry.Attempt) error {
			sent++
			return overloadedError{}
		})
	}
	fmt.Println(sent)
	// Output:
	// 1100
}

// Twice is a custom strategy: one retry, after 10 ms, where it is safe.
type Twice struct{ tokens retry.TokenSource }

func (s *Twice) Begin(call spillway.Call) retry.Token { return s.tokens.Begin(call, 0) }

func (s *Twice) Refresh(_ time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	state, err := s.tokens.Claim(t)
	if err != nil {
		return retry.Token{}, err
	}
	if state.Number > 0 || !f.Retryable(state.Call.Idempotent) {
		state.End()
		return retry.Token{}, &retry.NotRetriedError{Reason: retry.ReasonAttempts}
	}
	return state.Next(10 * time.Millisecond), nil
}

func (s *Twice) Succeed(t retry.Token) error                  { return s.end(t) }
func (s *Twice) Release(t retry.Token, _ fault.Failure) error { return s.end(t) }

func (s *Twice) end(t retry.Token) error {
	state, err := s.tokens.Claim(t)
	if err == nil {
		state.End()
	}
	return err
}

func ExampleStrategy() {
	err := retry.Do(context.Background(), new(Twice), spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
		fmt.Println("attempt", a.Number)
		return overloadedError{}
	})
	fmt.Println(err)
	// Output:
	// attempt 0
	// attempt 1
	// retry: gave up after 2 attempts: not retried: no more attempts are allowed (each has failed; see the last error): last error: 503 Service Unavailable
}
