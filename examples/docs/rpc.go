package docs

import (
	"google.golang.org/grpc"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

func rpc(target string, credentials grpc.DialOption) (*grpc.Server, *grpc.ClientConn, error) {
	server, err := spillgrpc.NewServer(spillgrpc.ServerConfig{HealthMethods: []string{"/grpc.health.v1.Health/Check"}})
	if err != nil {
		return nil, nil, err
	}
	s := grpc.NewServer(server.Options()...)

	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(target, append(client.DialOptions(), credentials)...)
	return s, conn, err
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
