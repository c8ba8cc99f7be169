package spillgrpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/retry"
)

// ClientConfig configures a [Client]. The zero ClientConfig is ready for use: all
// client policies with their defaults.
type ClientConfig struct {
	// Egress configures the policies. Each backend has a separate throttle and in-flight
	// limit, and if Retry is nil a retry budget. Egress.Hedge is for unary calls that only read, and with its Writes for idempotent ones, with
	// messages of Protocol Buffers. Results of call options of other packages must be safe for
	// concurrent use.
	Egress egress.Config
	// MaxBackends is the number of backends for which state is kept, of a few kilobytes each.
	// With a higher value, a client that calls many backends loses less state. Zero means
	// [egress.DefaultMaxBackends]; it must not be negative. A backend is the target of a
	// channel.
	MaxBackends int
	// Classify returns what is known about a call: whether it reads or writes, whether it is
	// idempotent. It must be quick and safe for concurrent use. If it leaves Key empty, Key
	// becomes the full name of the method. Nil means [ClassifyByProto].
	Classify func(ctx context.Context, method string) spillway.Call
	// Imported, if not nil, are the retries of a service config; Egress.Retry must
	// then be nil, or a strategy around [Imported.Strategy].
	Imported *Imported
	// External says that the calls go to services of other organizations. They are sent
	// without criticality and attempt number, even if the caller has set them.
	External bool
}

// A Client puts the client policies in front of the calls of one or several
// channels. It is safe for concurrent use; make one with [NewClient].
type Client struct {
	pool     *egress.Pool
	classify func(context.Context, string) spillway.Call
	imported *Imported
	external bool
	hedging  bool
	drops    dropCounts

	exchanges sync.Pool // of *exchange
}

// NewClient returns a Client, or an error that names the field of c that is wrong.
func NewClient(c ClientConfig) (*Client, error) {
	if c.MaxBackends < 0 {
		return nil, invalid.Field("spillgrpc", "MaxBackends", c.MaxBackends, "0 or more")
	}
	if c.Imported != nil {
		if c.Egress.Retry == nil {
			c.Egress.Retry = c.Imported.strategy
		}
		if !c.Imported.inside(c.Egress.Retry) {
			return nil, invalid.Field("spillgrpc", "Egress.Retry", c.Egress.Retry, "nil, or a strategy around Imported.Strategy, where Imported is given")
		}
	}
	if c.Classify == nil {
		c.Classify = ClassifyByProto
	}
	pool, err := egress.NewPool(c.Egress, c.MaxBackends)
	if err != nil {
		return nil, invalid.In("spillgrpc", "Egress", err)
	}
	hedges := c.Egress.Hedge != retry.HedgeConfig{}
	if hedges {
		hedging.Store(true)
	}
	return &Client{
		pool: pool, classify: c.Classify, imported: c.Imported, external: c.External, hedging: hedges,
		exchanges: sync.Pool{New: newExchange},
	}, nil
}

// DialOptions returns what [grpc.NewClient] needs for the calls of a channel to go
// through c: two interceptors, and that grpc itself retries nothing by a
// retryPolicy. Interceptors that are given before these see a call, those given
// after see each attempt.
func (c *Client) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
		grpc.WithDisableRetry(),
	}
}

// Stats returns the levels of the policies, by target.
func (c *Client) Stats(now time.Time) map[string]egress.Stats { return c.pool.Stats(now) }

// call says what is known of a call.
func (c *Client) call(ctx context.Context, method string) spillway.Call {
	call := c.classify(ctx, method)
	if call.Key == "" || c.imported != nil { // whose strategy goes by it
		call.Key = method
	}
	return call
}

// safe returns what an imported service config says of the codes of a method, or
// nil.
func (c *Client) safe(method string) func(codes.Code) fault.Safety {
	if c.imported == nil {
		return nil
	}
	return c.imported.policy(method).safe
}
