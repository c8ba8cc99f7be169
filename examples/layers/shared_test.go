package layers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/spillgrpc"
)

// methods is a service of two methods. UnaryCall returns fails.
type methods struct {
	pb.UnimplementedTestServiceServer

	fails error
}

func (s *methods) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{}, s.fails
}

func (s *methods) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

// tally counts how calls ended.
type tally struct {
	mu                      sync.Mutex
	served, local, over, no int // no: other failures
}

func (x *tally) ended(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == nil:
		x.served++
	case errors.Is(err, spillway.ErrRejected):
		x.local++
	case status.Code(err) == codes.ResourceExhausted:
		x.over++
	default:
		x.no++
	}
}

// TestOthersAreNotThrottled has one customer that is over its quota, or one method that
// always fails, with 900 calls a second, and others with 100, over one channel: the throttle
// of the client rejects no call of the others.
func TestOthersAreNotThrottled(t *testing.T) {
	const perSecond, seconds = 1000, 20
	for _, row := range []struct {
		name  string
		fails error
		bad   func(context.Context, pb.TestServiceClient) error
		check func(t *testing.T, bad *tally)
	}{
		{
			"RESOURCE_EXHAUSTED for one customer", nil,
			func(ctx context.Context, c pb.TestServiceClient) error {
				_, err := c.EmptyCall(metadata.AppendToOutgoingContext(ctx, "customer", "greedy"), &pb.Empty{})
				return err
			},
			func(t *testing.T, bad *tally) {
				t.Helper()
				if bad.over < perSecond*seconds*8/10 || bad.local > 0 {
					t.Errorf("of the customer %+v", bad)
				}
			},
		},
		{
			"UNAVAILABLE for one method", status.Error(codes.Unavailable, "always"),
			func(ctx context.Context, c pb.TestServiceClient) error {
				_, err := c.UnaryCall(ctx, &pb.SimpleRequest{})
				return err
			},
			func(t *testing.T, bad *tally) {
				t.Helper()
				if bad.local < perSecond*seconds*6/10 {
					t.Errorf("of the method %+v", bad)
				}
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, false)
				limits := must(quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{"greedy": {Rate: 10}}}))
				c := patient
				c.Quota = quota.Config{Allocator: limits}
				address := n.serveGRPC(&methods{fails: row.fails}, spillgrpc.ServerConfig{
					Ingress: newIngress(t, c),
					Classify: func(ctx context.Context, _ string) (call spillway.Call) {
						if md := metadata.ValueFromIncomingContext(ctx, "customer"); len(md) > 0 {
							call.Customer = md[0]
						}
						return call
					},
				})
				client := must(spillgrpc.NewClient(spillgrpc.ClientConfig{Classify: idempotent}))
				stub := pb.NewTestServiceClient(n.channel("passthrough:///"+address, client.DialOptions()...))
				var bad, good tally
				var all sync.WaitGroup
				for i := range perSecond * seconds {
					time.Sleep(time.Second / perSecond)
					all.Go(func() {
						if i%10 > 0 {
							bad.ended(row.bad(t.Context(), stub))
							return
						}
						_, err := stub.EmptyCall(t.Context(), &pb.Empty{})
						good.ended(err)
					})
				}
				all.Wait()
				t.Logf("bad %+v, good %+v", &bad, &good)
				if good.served != perSecond*seconds/10 {
					t.Errorf("of the others %+v", &good)
				}
				row.check(t, &bad)
			})
		})
	}
}
