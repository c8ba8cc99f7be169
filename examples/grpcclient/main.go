// Grpcclient calls the server of examples/grpcserver, a few times, and says what
// became of each call.
//
//	go run ./examples/grpcclient 127.0.0.1:9090
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillgrpc"
)

// limits are the limits of the process: any code that has them can change them at any time.
var limits inflight.Registry

func init() { balancer.Register(spillgrpc.NewBalancer(&limits)) } //nolint:gochecknoinits // as grpc wants it

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grpcclient ADDRESS")
	}
	cc, err := newChannel(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for range 5 {
		fmt.Println(call(context.Background(), cc))
	}
	if err := cc.Close(); err != nil {
		log.Fatal(err)
	}
}

// newChannel returns a channel with all policies: it throttles itself when the server rejects
// calls, has at most 64 attempts in flight, and retries within a budget.
func newChannel(address string) (*grpc.ClientConn, error) {
	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
	if err != nil {
		return nil, err
	}
	config, err := spillgrpc.BalancerConfig{Cluster: "example", MaxConcurrentRequests: new(uint32(64))}.ServiceConfig()
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(address, append(client.DialOptions(),
		grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// call makes one call of batch work, which is rejected before user-facing calls.
func call(ctx context.Context, cc *grpc.ClientConn) string {
	ctx = spillway.WithCriticality(ctx, spillway.SheddablePlus)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := pb.NewTestServiceClient(cc).UnaryCall(ctx, &pb.SimpleRequest{})
	switch {
	case errors.Is(err, spillway.ErrRejected):
		return "rejected here, never sent: " + err.Error()
	case err != nil:
		return "failed: " + err.Error()
	default:
		return answer.GetUsername()
	}
}
