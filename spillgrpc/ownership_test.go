package spillgrpc

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// A message is the caller's again when Send, or the call, has returned: it may ask for something else with the same message
// while a retry or a hedge of the first call is still to be sent.
func TestMessagesOfTheCaller(t *testing.T) {
	t.Run("server stream", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			changed := make(chan struct{})
			var got []string
			cc := open(t, &service{output: func(r *outputRequest, ss outputServer) error {
				if got = append(got, r.GetResponseStatus().GetMessage()); len(got) == 1 {
					<-changed
					return says(codes.Unavailable, keyPushback, "1")(ss.Context())
				}
				return nil
			}}).dial(mustClient(t, ClientConfig{Egress: eager}).DialOptions()...)
			m := &outputRequest{ResponseStatus: &pb.EchoStatus{Message: "shard-1"}}
			s, err := pb.NewTestServiceClient(cc).StreamingOutputCall(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			m.ResponseStatus.Message = "shard-2"
			close(changed)
			_, _ = s.Recv()
			if fmt.Sprint(got) != "[shard-1 shard-1]" {
				t.Errorf("the server received %v", got)
			}
		})
	})
	t.Run("hedge", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			changed := make(chan struct{})
			var got atomic.Value
			hedge := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if ctx.Value(hedgeKey{}) != nil {
					<-changed
					got.Store(req.(*pb.SimpleRequest).GetResponseStatus().GetMessage())
				}
				return invoker(ctx, method, req, reply, cc, opts...)
			}
			var slow atomic.Bool
			cc := open(t, &service{unary: func(context.Context) error {
				if slow.Load() {
					<-time.After(time.Second)
				}
				return nil
			}}).dial(append(mustClient(t, ClientConfig{Egress: hedges(), Classify: idempotent}).DialOptions(), grpc.WithChainUnaryInterceptor(hedge))...)
			for range 30 {
				if err := call(t.Context(), cc); err != nil {
					t.Fatal(err)
				}
			}
			slow.Store(true)
			m := &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "shard-1"}}
			if _, err := pb.NewTestServiceClient(cc).UnaryCall(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			m.ResponseStatus.Message = "shard-2"
			close(changed)
			synctest.Wait()
			if got.Load() != "shard-1" {
				t.Errorf("the hedge is for %v", got.Load())
			}
		})
	})
}
