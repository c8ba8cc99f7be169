package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillgrpc"
)

func anyOf(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// mesh starts a control plane that sends the service svc to one endpoint, with
// max_requests 1 and a share of drop_overload in percent, and returns the bootstrap.
func mesh(t *testing.T, addr *net.TCPAddr, dropped uint32) []byte {
	t.Helper()
	ads := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: new(corev3.AggregatedConfigSource)}}
	manager := &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads, RouteConfigName: "route"}},
		HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: anyOf(new(routerv3.Router))}}},
	}
	endpoint := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: addr.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(addr.Port)},
		}}},
	}}}
	assignment := &endpointv3.ClusterLoadAssignment{
		ClusterName: "users", Endpoints: []*endpointv3.LocalityLbEndpoints{{
			Locality: &corev3.Locality{Zone: "z"}, LoadBalancingWeight: wrapperspb.UInt32(1), LbEndpoints: []*endpointv3.LbEndpoint{endpoint},
		}},
	}
	if dropped > 0 {
		assignment.Policy = &endpointv3.ClusterLoadAssignment_Policy{DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{{
			Category: "lb", DropPercentage: &typev3.FractionalPercent{Numerator: dropped},
		}}}
	}
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{
		resource.ListenerType: {&listenerv3.Listener{Name: "svc", ApiListener: &listenerv3.ApiListener{ApiListener: anyOf(manager)}}},
		resource.RouteType: {&routev3.RouteConfiguration{Name: "route", VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "users"}}},
		}}}}}},
		resource.ClusterType: {&clusterv3.Cluster{
			Name: "users", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
			CircuitBreakers:  &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(1)}}},
		}},
		resource.EndpointType: {assignment},
	})
	if err != nil {
		t.Fatal(err)
	}
	snapshots := cache.NewSnapshotCache(false, everyNode{}, nil)
	if err := snapshots.SetSnapshot(t.Context(), everyNode{}.ID(nil), snapshot); err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(context.Background(), snapshots, nil))
	return fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": "test"}
	}`, listen(t, s))
}

func listen(t *testing.T, s *grpc.Server) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return listener.Addr()
}

type testServer struct {
	testgrpc.UnimplementedTestServiceServer
}

func (testServer) UnaryCall(context.Context, *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	return new(testgrpc.SimpleResponse), nil
}

func (testServer) FullDuplexCall(st testgrpc.TestService_FullDuplexCallServer) error {
	<-st.Context().Done()
	return st.Context().Err()
}

// On a channel of grpc's own xDS a call that circuit breaking or EDS drops is dropped
// once, whatever the retries, and the throttle does not take it for the backend's.
func TestDropsOfAnXDSChannel(t *testing.T) {
	imported, err := spillgrpc.ImportServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]
	}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	configs := map[string]spillgrpc.ClientConfig{
		"default":  {},
		"imported": {Imported: imported},
		"idempotent": {Classify: func(context.Context, string) spillway.Call {
			return spillway.Call{Idempotent: true}
		}},
	}
	backend := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(backend, testServer{})
	addr := listen(t, backend).(*net.TCPAddr)
	for name, config := range configs {
		for _, dropped := range []uint32{0, 100} {
			t.Run(fmt.Sprintf("%s, %d %% dropped", name, dropped), func(t *testing.T) {
				testDrops(t, config, mesh(t, addr, dropped), dropped == 0)
			})
		}
	}
}

func testDrops(t *testing.T, config spillgrpc.ClientConfig, bootstrap []byte, fill bool) {
	t.Helper()
	client, err := spillgrpc.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	picks := 0
	conn, err := grpc.NewClient("xds:///svc", append(client.DialOptions(),
		grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			picks++ // each attempt is one
			return invoker(ctx, method, req, reply, cc, opts...)
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := testgrpc.NewTestServiceClient(conn)
	if fill {
		if _, err := calls.FullDuplexCall(ctx, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	const n = 40
	for range n {
		_, err := calls.UnaryCall(ctx, new(testgrpc.SimpleRequest))
		if status.Code(err) != codes.Unavailable || !errors.Is(err, spillway.ErrRejected) {
			t.Fatalf("%v, want UNAVAILABLE that is a local rejection", err)
		}
	}
	if picks != n {
		t.Errorf("%d picks for %d calls that were dropped", picks, n)
	}
	want := spillgrpc.Drops{Overload: n}
	if fill {
		want = spillgrpc.Drops{CircuitBreaking: n}
	}
	if got := client.Drops(); got != want {
		t.Errorf("%+v are counted, want %+v", got, want)
	}
	if s := client.Stats(time.Now())[conn.CanonicalTarget()].Throttle[spillway.Critical.Index()]; s.Requests > 0 {
		t.Errorf("the throttle counts drops: %+v", s)
	}
	if _, ok := client.Stats(time.Now())["xds:///svc"]; !ok {
		t.Errorf("no statistics of the target: %v", client.Stats(time.Now()))
	}
}
