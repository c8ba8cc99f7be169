package spillgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway/egress"
)

// unary implements [grpc.UnaryClientInterceptor].
func (c *Client) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	opts, finish := withoutFinish(opts)
	if c.hedging {
		sent, ok1 := req.(proto.Message)
		received, ok2 := reply.(proto.Message)
		if ok1 && ok2 {
			err := c.unaryHedged(ctx, &hedgedCall{method: method, req: sent, reply: received, cc: cc, invoker: invoker, options: opts})
			finish.tell(err)
			return err
		}
	}
	x := c.exchanges.Get().(*exchange)
	x.client, x.method, x.req, x.reply, x.cc, x.invoker = c, method, req, reply, cc, invoker
	x.options(opts)
	err := c.pool.For(cc.Target()).Do(adopt(ctx), c.call(ctx, method), x.attempt)
	if err == nil {
		err = x.answer
	} else {
		err = errorOf(err)
	}
	attempt := x.attempt
	*x = exchange{attempt: attempt}
	c.exchanges.Put(x)
	finish.tell(err)
	return err
}

// An exchange is one unary call, with all its attempts. It serves one call after
// the other, but for what grpc is given, which might keep it.
type exchange struct {
	attempt func(context.Context, *egress.Attempt) error // send, made once

	client     *Client
	method     string
	req, reply any
	cc         *grpc.ClientConn
	invoker    grpc.UnaryInvoker
	given      *given
	answer     error // of the backend, that was no failure
}

// given is what grpc receives for a call: the options of the caller, and one of this package.
// It is one allocation that holds everything that most calls need.
type given struct {
	options []grpc.CallOption
	trailer metadata.MD
	space   [4]grpc.CallOption
}

func newExchange() any {
	x := new(exchange)
	x.attempt = x.send
	return x
}

func (x *exchange) options(opts []grpc.CallOption) {
	g := new(given)
	g.options = append(append(g.space[:0], opts...), grpc.Trailer(&g.trailer))
	x.given = g
}

// send makes one attempt.
func (x *exchange) send(ctx context.Context, a *egress.Attempt) error {
	a.Use(x.cc.Target())
	x.answer, x.given.trailer = nil, nil
	err := x.invoker(dress(ctx, a.Task(), a.Number, x.client.external), x.method, x.req, x.reply, x.cc, x.given.options...)
	listenToAdvice(a, x.given.trailer, x.client.external)
	if err == nil {
		return nil
	}
	failure := judge(ctx, err, x.given.trailer, x.client.safe(x.method))
	x.client.drops.add(failure)
	if failure == nil {
		x.answer = err
	}
	return failure
}

// finishers are the OnFinish functions of the caller, to be called when the call has ended.
// grpc would call them after each attempt.
type finishers []grpc.OnFinishCallOption

// withoutFinish returns opts without those.
func withoutFinish(opts []grpc.CallOption) (rest []grpc.CallOption, all finishers) {
	for i, o := range opts {
		if f, ok := o.(grpc.OnFinishCallOption); ok {
			if all == nil {
				rest = append(make([]grpc.CallOption, 0, len(opts)), opts[:i]...)
			}
			all = append(all, f)
		} else if all != nil {
			rest = append(rest, o)
		}
	}
	if all == nil {
		return opts, nil
	}
	return rest, all
}

func (all finishers) tell(err error) {
	for _, f := range all {
		f.OnFinish(err)
	}
}
