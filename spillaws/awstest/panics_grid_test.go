package awstest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
	"github.com/seed90641741/spillway/spilltest"
)

// A rig is a client whose middleware, transport and strategy burn.
type rig struct {
	*dynamodb.Client
	*tokens
}

func (r rig) Close() error { return nil }

// tokens is a strategy that knows which of its tokens were not given back.
type tokens struct {
	retry.Strategy

	mu   sync.Mutex
	open map[retry.Token]bool
}

func (l *tokens) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

func (l *tokens) note(t retry.Token, open bool) retry.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.open, t); open {
		l.open[t] = true
	}
	return t
}

func (l *tokens) Begin(call spillway.Call) retry.Token { return l.note(l.Strategy.Begin(call), true) }

func (l *tokens) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	next, err := l.Strategy.Refresh(now, l.note(t, false), f)
	return l.note(next, err == nil), err
}

func (l *tokens) Succeed(t retry.Token) error { return l.Strategy.Succeed(l.note(t, false)) }

func (l *tokens) Release(t retry.Token, f fault.Failure) error {
	return l.Strategy.Release(l.note(t, false), f)
}

// fused is a service that does the work of a fuse.
type fused struct{ f *spilltest.Fuse }

func (s fused) Do(req *http.Request) (*http.Response, error) {
	answer := ok
	switch err := s.f.Work(req.Context()); {
	case errors.Is(err, spilltest.ErrBusy):
		answer = busy
	case err != nil:
		return nil, err
	}
	resp, err := answer(req)
	resp.Body = burningBody{resp.Body, s.f}
	return resp, err
}

type burningBody struct {
	io.ReadCloser

	f *spilltest.Fuse
}

func (b burningBody) Read(p []byte) (int, error) {
	b.f.Burn("Body.Read")
	return b.ReadCloser.Read(p)
}

func (b burningBody) Close() error {
	b.f.Burn("Body.Close")
	return b.ReadCloser.Close()
}

// burns adds middleware around the call, and around each attempt.
func burns(f *spilltest.Fuse) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		call := middleware.InitializeMiddlewareFunc("call", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			f.Burn("middleware of the call")
			defer f.Burn("middleware of the call")
			return next.HandleInitialize(ctx, in)
		})
		attempt := middleware.FinalizeMiddlewareFunc("attempt", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
			middleware.FinalizeOutput, middleware.Metadata, error,
		) {
			f.Burn("middleware of the attempt")
			defer f.Burn("middleware of the attempt")
			return next.HandleFinalize(ctx, in)
		})
		return errors.Join(s.Initialize.Add(call, middleware.Before), s.Finalize.Add(attempt, middleware.After))
	}
}

func testPanics(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r rig) error { return get(ctx, r.Client) }, nil)
	points.Rejected.Do, points.Rejected.Not = nil, "a client that retries has no gate"
	points.Waiting.Do, points.Waiting.Not = nil, "a client that retries has no queue"
	points.Hedge.Do, points.Hedge.Not = nil, "calls are not hedged"
	points.Stream.Not = "an operation reads its answer before it returns; an event stream begins after its last attempt"
	inBothBehaviours(t, func(t *testing.T) {
		for _, mode := range []aws.RetryMode{aws.RetryModeStandard, aws.RetryModeAdaptive} {
			t.Run(string(mode), func(t *testing.T) {
				spilltest.TestPanics(t, func(_ *testing.T, f *spilltest.Fuse) rig {
					l := &tokens{Strategy: f.Egress(egress.Config{}).Retry, open: map[retry.Token]bool{}}
					r := must(spillaws.New(spillaws.Config{Strategy: l, Mode: mode}))
					return rig{database(r, fused{f}, func(o *dynamodb.Options) {
						o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
							f.Burn("Credentials")
							return secret.Retrieve(ctx)
						})
						o.APIOptions = append(o.APIOptions, burns(f))
					}), l}
				}, points)
			})
		}
	})
}
