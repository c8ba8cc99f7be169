package spillconnect

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/invalid"
)

// ClientConfig configures a [Client]. The zero ClientConfig is ready for use: all client
// policies with their defaults.
type ClientConfig struct {
	// Egress configures the policies. Each backend, by the host and port of its URL, has its
	// own throttle, in-flight limit and, if Retry is nil, retry budget.
	Egress egress.Config
	// MaxBackends is for how many backends state is kept. Zero means
	// [egress.DefaultMaxBackends]; it must not be negative.
	MaxBackends int
	// Classify returns what is known of a call. It must be quick and safe for concurrent
	// use. A Key that it leaves empty becomes the procedure. Nil means [ClassifyBySpec].
	Classify func(ctx context.Context, spec connect.Spec) spillway.Call
	// External says that the calls go to services of others. They are sent without
	// criticality and attempt number.
	External bool
}

// ClassifyBySpec returns what the idempotency level of the procedure says: a call without
// side effects is a read, and may be retried as an idempotent one may.
func ClassifyBySpec(_ context.Context, spec connect.Spec) spillway.Call {
	call := spillway.Call{Key: spec.Procedure}
	switch spec.IdempotencyLevel {
	case connect.IdempotencyNoSideEffects:
		call.Kind, call.Idempotent = spillway.KindRead, true
	case connect.IdempotencyIdempotent:
		call.Kind, call.Idempotent = spillway.KindWrite, true
	case connect.IdempotencyUnknown:
	}
	return call
}

// A Client is a [connect.Interceptor] with the client policies. It is safe for concurrent
// use; make one with [NewClient], for all clients of a process. In a handler it does nothing.
type Client struct {
	pool     *egress.Pool
	classify func(context.Context, connect.Spec) spillway.Call
	external bool
}

var _ connect.Interceptor = (*Client)(nil)

// NewClient returns a Client, or an error that names the field of c that is wrong.
func NewClient(c ClientConfig) (*Client, error) {
	if c.MaxBackends < 0 {
		return nil, invalid.Field("spillconnect", "MaxBackends", c.MaxBackends, "0 or more")
	}
	if c.Classify == nil {
		c.Classify = ClassifyBySpec
	}
	pool, err := egress.NewPool(c.Egress, c.MaxBackends)
	if err != nil {
		return nil, invalid.In("spillconnect", "Egress", err)
	}
	return &Client{pool: pool, classify: c.Classify, external: c.External}, nil
}

// Stats returns the levels of the policies, by the host and port of the backend.
func (c *Client) Stats(now time.Time) map[string]egress.Stats { return c.pool.Stats(now) }

// WrapStreamingHandler implements [connect.Interceptor]. It returns next.
func (c *Client) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapUnary implements [connect.Interceptor]. Interceptors that are given before this one see
// a call, and later ones see each attempt.
func (c *Client) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if !req.Spec().IsClient {
			return next(ctx, req)
		}
		var (
			resp   connect.AnyResponse
			answer error // of the backend, that is no failure
		)
		ctx, call := c.call(ctx, req.Spec(), req.Header())
		err := c.pool.For(req.Peer().Addr).Do(ctx, call, func(ctx context.Context, a *egress.Attempt) error {
			label(ctx, req.Header(), a, c.external)
			resp, answer = next(ctx, req)
			failure := failureOf(ctx, answer)
			if failure != nil {
				answer = nil
			}
			return failure
		})
		switch {
		case err != nil:
			return nil, errorOf(err)
		case answer != nil:
			return nil, answer
		default:
			return resp, nil
		}
	}
}

// call returns what is known of a call, and its context: a class that the caller has put
// into the headers counts.
func (c *Client) call(ctx context.Context, spec connect.Spec, h http.Header) (context.Context, spillway.Call) {
	if class, err := spillway.ParseCriticality(h.Get(headerCriticality)); err == nil {
		ctx = spillway.WithCriticality(ctx, class)
	}
	call := c.classify(ctx, spec)
	if call.Key == "" {
		call.Key = spec.Procedure
	}
	return ctx, call
}
