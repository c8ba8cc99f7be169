package docs

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

func rpcServer(ctx context.Context, listener net.Listener, service pb.TestServiceServer) error {
	server, err := spillgrpc.NewServer(spillgrpc.ServerConfig{HealthMethods: []string{"/grpc.health.v1.Health/Check"}})
	if err != nil {
		return err
	}
	s := grpc.NewServer(server.Options()...)
	ready := health.NewServer()
	healthpb.RegisterHealthServer(s, ready)
	pb.RegisterTestServiceServer(s, service) // yours

	context.AfterFunc(ctx, func() { // after SIGTERM
		ready.Shutdown()                       // health checks get NOT_SERVING
		time.Sleep(5 * time.Second)            // load balancers see it
		time.AfterFunc(20*time.Second, s.Stop) // calls that are left are canceled
		s.GracefulStop()
	})
	return errors.Join(s.Serve(listener), server.Close()) // Serve returns when the last call has ended
}

func rpcClient(target string, credentials grpc.DialOption) (*grpc.ClientConn, error) {
	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(target, append(client.DialOptions(), credentials)...)
}

func xds() (*spillhttp.Transport, error) {
	client, err := spillxds.New(spillxds.Config{}) // reads GRPC_XDS_BOOTSTRAP
	if err != nil {
		return nil, err
	}
	users, err := client.Cluster(inflight.Key{Cluster: "users"})
	if err != nil {
		return nil, err
	}
	return spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: users.Egress(egress.Config{}),
		Base:   users.RoundTripper(nil),
	})
}
