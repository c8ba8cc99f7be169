package spillgrpc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// A hedgedCall is a unary call that may be hedged. Unlike an exchange it is not used again, as
// a hedge may outlive the call.
type hedgedCall struct {
	client  *Client
	method  string
	req     proto.Message
	reply   proto.Message
	kind    protoreflect.MessageType // of the reply, into which the first attempt may write at any time
	cc      *grpc.ClientConn
	invoker grpc.UnaryInvoker
	options []grpc.CallOption

	mu       sync.Mutex
	returned bool // the call has: req is the caller's again
}

// giveBack says that the request is the caller's again, who may change it.
func (h *hedgedCall) giveBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.returned = true
}

// clone returns a copy of the request for the hedge, which may read it when the call has returned; nil if the call has
// returned already. The first attempt is always waited for, and needs none.
func (h *hedgedCall) clone() proto.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.returned {
		return nil
	}
	return proto.Clone(h.req)
}

// hedged is what an attempt of a call has brought.
type hedged struct {
	answer error  // of the backend, that was no failure
	accept func() // gives the caller what a hedge has brought; nil: the caller has it
}

// unaryHedged makes a unary call with a hedge where the policies allow it.
func (c *Client) unaryHedged(ctx context.Context, h *hedgedCall) error {
	h.client, h.kind = c, h.reply.ProtoReflect().Type()
	defer h.giveBack()
	ctx = context.WithValue(adopt(ctx), firstPickKey{}, new(firstPick))
	call := c.call(ctx, h.method)
	call.Criticality = spillway.CriticalityFrom(ctx)
	r, err := egress.Hedged(ctx, c.pool.For(h.cc.Target()), call, nil, h.send, nil)
	if err != nil {
		return errorOf(err)
	}
	if r.accept != nil {
		r.accept()
	}
	return r.answer
}

// send makes one attempt.
func (h *hedgedCall) send(ctx context.Context, a *egress.Attempt) (r hedged, failure error) {
	a.Use(h.cc.Target())
	req, reply, options := h.req, h.reply, h.options
	if a.IsHedge() {
		if req = h.clone(); req == nil {
			return r, context.Canceled // nobody waits for this answer
		}
		ctx = context.WithValue(ctx, hedgeKey{}, true)
		reply = h.kind.New().Interface()
		var accept []func()
		options, accept = ownResults(options)
		r.accept = func() {
			proto.Reset(h.reply)
			proto.Merge(h.reply, reply)
			for _, f := range accept {
				f()
			}
		}
	}
	var trailer metadata.MD
	options = append(slices.Clip(options), grpc.Trailer(&trailer))
	err := h.invoker(dress(ctx, a.Task(), a.Number, h.client.external), h.method, req, reply, h.cc, options...)
	listenToAdvice(a, trailer, h.client.external)
	if err == nil {
		return r, nil
	}
	failure = judge(ctx, err, trailer, h.client.safe(h.method))
	h.client.drops.add(failure)
	if failure == nil {
		r.answer = err
	}
	return r, failure
}

// ownResults returns opts in which grpc writes the results for the caller to other places, and
// a func that copies them to the places of the caller.
func ownResults(opts []grpc.CallOption) (own []grpc.CallOption, accept []func()) {
	own = make([]grpc.CallOption, len(opts), len(opts)+1)
	for i, o := range opts {
		own[i] = o
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			md := new(metadata.MD)
			own[i] = grpc.Header(md)
			accept = append(accept, func() { *o.HeaderAddr = *md })
		case grpc.TrailerCallOption:
			md := new(metadata.MD)
			own[i] = grpc.Trailer(md)
			accept = append(accept, func() { *o.TrailerAddr = *md })
		case grpc.PeerCallOption:
			p := new(peer.Peer)
			own[i] = grpc.Peer(p)
			accept = append(accept, func() { *o.PeerAddr = *p })
		}
	}
	return own, accept
}

// A firstPick remembers which endpoint the first attempt of a call has gone to.
type firstPick struct{ endpoint atomic.Pointer[endpoint] }

type (
	firstPickKey struct{} // of the *firstPick of a call
	hedgeKey     struct{} // of a hedge
)

// hedging says that some Client sends hedges, so that picks have to look for them.
var hedging atomic.Bool

// avoided returns the endpoint that an attempt should not go to, if it is a hedge, or nil. It
// remembers the endpoint x of any other attempt. A balancer may pick without a call: ctx is nil.
func avoided(ctx context.Context, x *endpoint) *endpoint {
	if ctx == nil || !hedging.Load() {
		return nil
	}
	first, _ := ctx.Value(firstPickKey{}).(*firstPick)
	if first == nil {
		return nil
	}
	if ctx.Value(hedgeKey{}) == nil {
		first.endpoint.Store(x)
		return nil
	}
	return first.endpoint.Load()
}
