package spillgrpc

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// A fuse panics at the end of a countdown.
type fuse struct{ left atomic.Int32 }

func (f *fuse) burn() {
	if f.left.Add(-1) == 0 {
		panic("mine")
	}
}

func (f *fuse) classify(context.Context, string) spillway.Call {
	f.burn()
	return spillway.Call{Idempotent: true}
}

func (f *fuse) observe(policy string) spillway.Observer {
	return spillway.ObserverFunc(func(e spillway.Event) {
		if e.Policy == policy {
			f.burn()
		}
	})
}

func (f *fuse) intercept(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	f.burn()
	return streamer(ctx, desc, cc, method, opts...)
}

// panickyCodec panics when it encodes a message.
type panickyCodec struct {
	encoding.CodecV2

	*fuse
}

func (c panickyCodec) Marshal(v any) (mem.BufferSlice, error) {
	c.burn()
	return c.CodecV2.Marshal(v)
}

// panickyDecoder panics when it decodes a message.
type panickyDecoder struct {
	encoding.CodecV2

	*fuse
}

func (c panickyDecoder) Unmarshal(data mem.BufferSlice, v any) error {
	c.burn()
	return c.CodecV2.Unmarshal(data, v)
}

// panickyStrategy panics when it is asked for a retry.
type panickyStrategy struct {
	retry.Strategy

	*fuse
}

func (s panickyStrategy) Begin(c spillway.Call) retry.Token {
	s.burn()
	return s.Strategy.Begin(c)
}

// The attempts of a stream are made in a goroutine of this package. Code of the user that panics there does so in the
// goroutine of the caller, who can recover, as with grpc alone. Nothing stays in flight, and the client works on.
func TestStreamPanics(t *testing.T) {
	type settings struct {
		config ClientConfig
		dial   []grpc.DialOption
		call   []grpc.CallOption
	}
	for name, row := range map[string]struct {
		after  int32 // how often the callback returns before
		panics func(*fuse, *settings)
	}{
		"classify":           {0, func(f *fuse, s *settings) { s.config.Classify = f.classify }},
		"strategy":           {0, func(f *fuse, s *settings) { s.config.Egress.Retry = panickyStrategy{eager.Retry, f} }},
		"interceptor":        {0, func(f *fuse, s *settings) { s.dial = append(s.dial, grpc.WithChainStreamInterceptor(f.intercept)) }},
		"interceptor, retry": {1, func(f *fuse, s *settings) { s.dial = append(s.dial, grpc.WithChainStreamInterceptor(f.intercept)) }},
		"codec": {0, func(f *fuse, s *settings) {
			s.call = append(s.call, grpc.ForceCodecV2(panickyCodec{encoding.GetCodecV2("proto"), f}))
		}},
		"codec, retry": {1, func(f *fuse, s *settings) {
			s.call = append(s.call, grpc.ForceCodecV2(panickyCodec{encoding.GetCodecV2("proto"), f}))
		}},
		"decoder": {0, func(f *fuse, s *settings) {
			s.call = append(s.call, grpc.ForceCodecV2(panickyDecoder{encoding.GetCodecV2("proto"), f}))
		}},
		"observer of throttle":  {0, func(f *fuse, s *settings) { s.config.Egress.Observer = f.observe("throttle") }},
		"observer, second time": {1, func(f *fuse, s *settings) { s.config.Egress.Observer = f.observe("throttle") }},
		"observer of the call":  {0, func(f *fuse, s *settings) { s.config.Egress.Observer = f.observe("retry") }},
		"finish":                {0, func(f *fuse, s *settings) { s.call = append(s.call, grpc.OnFinish(func(error) { f.burn() })) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f, s := new(fuse), settings{config: ClientConfig{Egress: eager, Classify: idempotent}}
				s.config.Egress.ThrottleMode = spillway.ModeObserve
				f.left.Store(row.after + 1)
				row.panics(f, &s)
				client := mustClient(t, s.config)
				var arrived atomic.Int32
				cc := open(t, &service{output: func(_ *outputRequest, ss outputServer) error {
					if arrived.Add(1) == 1 {
						return says(codes.Unavailable, keyPushback, "1")(ss.Context())
					}
					return ss.Send(&pb.StreamingOutputCallResponse{})
				}}).dial(append(client.DialOptions(), append(s.dial, grpc.WithDefaultCallOptions(s.call...))...)...)
				func() {
					defer func() {
						if got := recover(); got != "mine" {
							t.Errorf("recovered %v", got)
						}
					}()
					_, err := receive(t.Context(), cc)
					t.Errorf("returned %v", err)
				}()
				synctest.Wait()
				if n := inFlight(client); n != 0 {
					t.Errorf("%d in flight", n)
				}
				if _, err := receive(t.Context(), cc); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}
