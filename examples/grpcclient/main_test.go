package main

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway/inflight"
)

type service struct {
	pb.UnimplementedTestServiceServer
}

func (service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	label := metadata.ValueFromIncomingContext(ctx, "x-request-criticality")
	return &pb.SimpleResponse{Username: strings.Join(label, ",")}, nil
}

func TestCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterTestServiceServer(s, service{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	defer serving.Wait()
	defer s.Stop()
	cc, err := newChannel(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	if got := call(t.Context(), cc); got != "SHEDDABLE_PLUS" {
		t.Errorf("the server saw %q", got)
	}
	limit, release := limits.Share(inflight.Key{Cluster: "example"})
	defer release()
	limit.SetMaxInFlight(0)
	if got := call(t.Context(), cc); !strings.HasPrefix(got, "rejected here, never sent: cluster example: ") {
		t.Error(got)
	}
}
