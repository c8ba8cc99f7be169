package tasks

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed90641741/spillway/spillgrpc"
)

func beforeGRPC(target string) (*grpc.Server, *grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return grpc.NewServer(), conn, err
}

// Both sides of gRPC.
func afterGRPC(target string) (*grpc.Server, *grpc.ClientConn, error) {
	server, err := spillgrpc.NewServer(spillgrpc.ServerConfig{HealthMethods: []string{"/grpc.health.v1.Health/Check"}})
	if err != nil {
		return nil, nil, err
	}
	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
	if err != nil {
		return nil, nil, err
	}
	options := append(client.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(target, options...)
	return grpc.NewServer(server.Options()...), conn, err
}
