package spilltest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// ErrBusy is returned by the work of a call in [TestRetries] for an attempt that may be made
// again. Package fault understands it. An adapter whose errors cannot pass through a protocol
// translates it: the backend answers with a failure that is safe to retry.
var ErrBusy error = busy{}

type busy struct{}

func (busy) Error() string             { return "spilltest: the backend is busy" }
func (busy) RetrySafety() fault.Safety { return fault.RetrySafe }

// TestRetries tests whatever makes calls under a [retry.Strategy]: package egress, or an adapter
// for a client. open returns a [Do] of a new client that retries by the strategy s and rejects
// nothing: its throttle is off. Each call must be settled with the strategy exactly once, also
// if it panics, or is canceled in an attempt or between two.
func TestRetries(t *testing.T, open func(t *testing.T, s retry.Strategy) Do) {
	for _, clause := range []struct {
		name string
		test func(c *calls)
	}{
		{"each call is settled once", testRetried},
		{"panic", testRetryPanic},
		{"cancel", testRetryCancel},
		{"cancel before a retry", testRetryCancelWaiting},
		{"concurrent calls", testRetryConcurrent},
	} {
		t.Run(clause.name, func(t *testing.T) {
			c := &calls{t: t}
			c.do = open(t, &c.ledger)
			clause.test(c)
			c.settled()
		})
	}
}

// mostAttempts is how many attempts the strategy of a test grants.
const mostAttempts = 3

// A ledger is a strategy that counts.
type ledger struct {
	source  retry.TokenSource
	delay   time.Duration // before a retry
	granted func()        // called when a retry is

	begun, succeeded, ended, unsent, misused atomic.Int64
}

// Begin implements [retry.Strategy].
func (l *ledger) Begin(call spillway.Call) retry.Token {
	l.begun.Add(1)
	return l.source.Begin(call, 0)
}

// Refresh implements [retry.Strategy].
func (l *ledger) Refresh(_ time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	s, err := l.claim(t)
	if err != nil {
		return retry.Token{}, err
	}
	if !f.Retryable(true) || s.Number+1 == mostAttempts {
		l.end(s)
		return retry.Token{}, &retry.NotRetriedError{Reason: retry.ReasonNotRetryable}
	}
	if l.granted != nil {
		l.granted()
	}
	return s.Next(l.delay), nil
}

// Succeed implements [retry.Strategy].
func (l *ledger) Succeed(t retry.Token) error {
	s, err := l.claim(t)
	if err == nil {
		l.succeeded.Add(1)
		l.end(s)
	}
	return err
}

// Release implements [retry.Strategy].
func (l *ledger) Release(t retry.Token, f fault.Failure) error {
	s, err := l.claim(t)
	if err == nil {
		if f.Unsent {
			l.unsent.Add(1)
		}
		l.end(s)
	}
	return err
}

func (l *ledger) claim(t retry.Token) (*retry.State, error) {
	s, err := l.source.Claim(t)
	if err != nil {
		l.misused.Add(1)
	}
	return s, err
}

func (l *ledger) end(s *retry.State) {
	l.ended.Add(1)
	s.End()
}

// calls are the calls of one clause.
type calls struct {
	ledger

	t    *testing.T
	do   Do
	runs atomic.Int64
}

// call makes a call whose attempts end as answers say, the last of them again and again. A
// panic is an error.
func (c *calls) call(ctx context.Context, answers ...func(context.Context) error) (err error) {
	defer recovered(&err)
	var n atomic.Int64
	return c.do(ctx, func(ctx context.Context) error {
		c.runs.Add(1)
		return answers[min(int(n.Add(1)), len(answers))-1](ctx)
	})
}

// settled checks that each call has begun and ended once.
func (c *calls) settled() {
	c.t.Helper()
	if begun, ended := c.begun.Load(), c.ended.Load(); begun != ended {
		c.t.Errorf("%d calls have begun with the strategy, and %d have ended", begun, ended)
	}
	if n := c.misused.Load(); n > 0 {
		c.t.Errorf("%d times a token was used again", n)
	}
}

func isBusy(context.Context) error { return ErrBusy }

func testRetried(c *calls) {
	for _, row := range []struct {
		name       string
		answers    []func(context.Context) error
		runs, good int64
	}{
		{"that is served", []func(context.Context) error{works}, 1, 1},
		{"that is served at the second attempt", []func(context.Context) error{isBusy, works}, 2, 1},
		{"that is served at the last attempt", []func(context.Context) error{isBusy, isBusy, works}, mostAttempts, 1},
		{"that is never served", []func(context.Context) error{isBusy}, mostAttempts, 0},
	} {
		runs, good := c.runs.Load(), c.succeeded.Load()
		if err := c.call(context.Background(), row.answers...); (err == nil) != (row.good == 1) {
			c.t.Errorf("a call %s returns %v", row.name, err)
		}
		if n := c.runs.Load() - runs; n != row.runs {
			c.t.Errorf("a call %s has %d attempts, must have %d", row.name, n, row.runs)
		}
		if n := c.succeeded.Load() - good; n != row.good {
			c.t.Errorf("a call %s is reported as a success %d times", row.name, n)
		}
		c.settled()
	}
}

func testRetryPanic(c *calls) {
	good := c.succeeded.Load() // calls that open made
	for _, answers := range [][]func(context.Context) error{{panics}, {isBusy, panics}} {
		if err := c.call(context.Background(), answers...); !errors.As(err, new(panicked)) {
			c.t.Errorf("a call whose work panics ends with %v, must panic", err)
		}
		c.settled()
	}
	if n := c.succeeded.Load() - good; n > 0 {
		c.t.Errorf("%d calls are reported as successes whose work has panicked", n)
	}
}

func testRetryCancel(c *calls) {
	ctx, cancel := context.WithCancel(context.Background())
	err := c.call(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if n := c.runs.Load(); err == nil || n != 1 {
		c.t.Errorf("a call that is canceled in its first attempt: %v after %d attempts", err, n)
	}
}

// testRetryCancelWaiting cancels a call that waits for its retry, which was paid for.
func testRetryCancelWaiting(c *calls) {
	ctx, cancel := context.WithCancel(context.Background())
	c.delay, c.granted = time.Hour, cancel
	result := make(chan error, 1)
	go func() { result <- c.call(ctx, isBusy) }()
	select {
	case err := <-result:
		if n := c.runs.Load(); err == nil || n != 1 {
			c.t.Errorf("a call that is canceled before its retry: %v after %d attempts", err, n)
		}
	case <-time.After(patience):
		c.t.Fatalf("a call that was canceled before its retry still waits after %v", patience)
	}
	if n := c.unsent.Load(); n != 1 {
		c.t.Errorf("%d retries are released as never sent, must be 1", n)
	}
}

func testRetryConcurrent(c *calls) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				answers := []func(context.Context) error{isBusy, works, fails}[(i+j)%3:]
				if err := c.call(context.Background(), answers...); (err == nil) == ((i+j)%3 == 2) {
					c.t.Errorf("concurrent calls: %v", err)
				}
			}
		})
	}
	all.Wait()
}
