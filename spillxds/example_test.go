package spillxds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

// A client of net/http whose limits a control plane sets, and which reports to it
// what it has rejected. The bootstrap is the one that gRPC would use.
func Example() {
	client, err := spillxds.New(spillxds.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	users, err := client.Cluster(inflight.Key{Cluster: "users"})
	if err != nil {
		fmt.Println(err)
		return
	}
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: users.Egress(egress.Config{}),
		Base:   users.RoundTripper(nil),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	// Output: spillxds: no bootstrap: set GRPC_XDS_BOOTSTRAP or GRPC_XDS_BOOTSTRAP_CONFIG, or Config.Bootstrap
}

// Until the control plane has answered, the default of A32 is in force. A program
// that must not call before that waits.
func ExampleCluster_Ready() {
	bootstrap, err := spillxds.ParseBootstrap([]byte(`{
		"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}],
		"node": {"id": "checkout-7"}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := spillxds.New(spillxds.Config{Bootstrap: bootstrap})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	users, err := client.Cluster(inflight.Key{Cluster: "users"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err = users.Ready(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), users.Limiter().Stats(time.Now()).MaxInFlight)
	// Output: true 1024
}

// A gRPC server that tells its clients how busy it is.
func ExampleOrca() {
	gates, err := ingress.New(ingress.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gates.Close()
	orca, err := spillxds.NewOrca(spillxds.OrcaConfig{Server: gates})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(orca.UnaryInterceptor), // and then those that reject
		grpc.ChainStreamInterceptor(orca.StreamInterceptor),
	)
	orca.Register(server)
	orca.Close() // ends the reports out of band, which a graceful stop would wait for
	server.GracefulStop()
	fmt.Println(len(server.GetServiceInfo()))
	// Output: 1
}
