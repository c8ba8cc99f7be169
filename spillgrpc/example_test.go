package spillgrpc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/spillgrpc"
)

type service struct {
	pb.UnimplementedTestServiceServer
}

func (service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Username: "served as " + spillway.CriticalityFrom(ctx).String()}, nil
}

// A server that lets each customer make a call every ten seconds and two at once, and
// a client whose calls say how much they matter.
func Example() {
	limits, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 0.1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	gates, err := ingress.New(ingress.Config{
		Quota: quota.Config{Allocator: limits, BurstSeconds: 20},
		Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gates.Close()
	server, err := spillgrpc.NewServer(spillgrpc.ServerConfig{
		Ingress: gates,
		Classify: func(context.Context, string) spillway.Call {
			return spillway.Call{Customer: "alice"} // as the token of the caller says
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := grpc.NewServer(server.Options()...)
	defer s.Stop()
	pb.RegisterTestServiceServer(s, service{})
	listener := bufconn.Listen(1 << 16)
	go s.Serve(listener)

	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cc, err := grpc.NewClient("passthrough:///orders", append(client.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()
	ctx := spillway.WithCriticality(context.Background(), spillway.SheddablePlus)
	for range 3 {
		answer, err := pb.NewTestServiceClient(cc).UnaryCall(ctx, &pb.SimpleRequest{})
		fmt.Println(answer.GetUsername(), status.Code(err))
	}
	// Output:
	// served as SHEDDABLE_PLUS OK
	// served as SHEDDABLE_PLUS OK
	//  ResourceExhausted
}

// The retries of a service config, and how they differ from the retries of grpc.
func ExampleImportServiceConfig() {
	imported, err := spillgrpc.ImportServiceConfig(`{
		"methodConfig": [{
			"name": [{"service": "orders.Orders"}],
			"retryPolicy": {
				"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1.5,
				"retryableStatusCodes": ["UNAVAILABLE"]
			}
		}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, note := range imported.NotCarriedOver {
		fmt.Println(note)
	}
	if _, err := spillgrpc.NewClient(spillgrpc.ClientConfig{Imported: imported}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// /orders.Orders/: backoffMultiplier: 1.5 is taken as 2
	// /orders.Orders/: the wait before a retry is uniform between nothing and the backoff (grpc: within 20 % of the backoff)
}

func ExampleBalancerConfig_ServiceConfig() {
	text, err := spillgrpc.BalancerConfig{Cluster: "orders", MaxConcurrentRequests: new(uint32(500))}.ServiceConfig()
	fmt.Println(text, err)
	// Output:
	// {"loadBalancingConfig":[{"spillway_max_requests":{"cluster":"orders","maxConcurrentRequests":500}}]} <nil>
}
