// Grpcserver serves a health check, reflection and a method that takes a while, and rejects
// calls above its capacity.
//
//	go run ./examples/grpcserver 127.0.0.1:9090
package main

import (
	"context"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillgrpc"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grpcserver ADDRESS")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.Serve(listener))
}

// newServer returns a server with all services, behind the policies. Only services
// of the same owner reach it, so it trusts their metadata.
func newServer() (*grpc.Server, error) {
	gates, err := ingress.New(ingress.Config{
		Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus},
	})
	if err != nil {
		return nil, err
	}
	protection, err := spillgrpc.NewServer(spillgrpc.ServerConfig{Ingress: gates})
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer(protection.Options()...)
	pb.RegisterTestServiceServer(s, service{})
	healthpb.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	return s, nil
}

type service struct {
	pb.UnimplementedTestServiceServer
}

// UnaryCall works for ten milliseconds. Calls that it made with ctx would carry on
// the criticality and the deadline of this one.
func (service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	select {
	case <-time.After(10 * time.Millisecond):
		return &pb.SimpleResponse{Username: "served as " + spillway.CriticalityFrom(ctx).String()}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
