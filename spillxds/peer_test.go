package spillxds_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

// mesh adds to p what gRPC needs in addition to clusters to find a service of that name
// at addr.
func (p *plane) mesh(service, clusterName, addr string) {
	host, port, _ := net.SplitHostPort(addr)
	number := must(strconv.Atoi(port))
	ads := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: new(corev3.AggregatedConfigSource)}}
	manager := &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads, RouteConfigName: "route"}},
		HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: must(anypb.New(new(routerv3.Router)))}}},
	}
	p.resources[resource.ListenerType] = []types.Resource{&listenerv3.Listener{
		Name: service, ApiListener: &listenerv3.ApiListener{ApiListener: must(anypb.New(manager))},
	}}
	p.resources[resource.RouteType] = []types.Resource{&routev3.RouteConfiguration{
		Name: "route", VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterName}}},
		}}}},
	}}
	p.resources[resource.EndpointType] = []types.Resource{&endpointv3.ClusterLoadAssignment{
		ClusterName: clusterName, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			Locality: &corev3.Locality{Zone: "z"}, LoadBalancingWeight: wrapperspb.UInt32(1),
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(number)},
				}}},
			}}}},
		}},
	}}
}

// hold opens requests until one is rejected, and returns how many were open at once.
// All are closed again.
func hold(open func() (end func(), rejected bool)) int {
	for n := 0; ; n++ {
		end, rejected := open()
		if rejected {
			return n
		}
		defer end()
	}
}

// TestSameLimitAsGRPC feeds an xDS channel of grpc-go and a limited HTTP client
// from one control plane, and looks at how much each lets be in flight.
func TestSameLimitAsGRPC(t *testing.T) {
	p := newPlane(t)
	addr, stop := serve(t, new(backend), freeport.Address(t))
	defer stop()
	p.mesh("svc", "users", addr)
	resolver := must(xds.NewXDSResolverWithConfigForTesting(p.bootstrapText()))
	conn := must(grpc.NewClient("xds:///svc", grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer conn.Close()
	calls := testgrpc.NewTestServiceClient(conn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	openGRPC := func() (func(), bool) {
		ctx, cancel := context.WithCancel(ctx)
		_, err := calls.FullDuplexCall(ctx)
		if code := status.Code(err); code != codes.OK && code != codes.Unavailable {
			t.Error(err)
		}
		return cancel, err != nil
	}

	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer web.Close()
	users := must(p.client(spillxds.Config{}).Cluster(key("users")))
	hc := &http.Client{Transport: must(spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: users.Egress(egress.Config{ThrottleMode: spillway.ModeOff}), Base: users.RoundTripper(nil),
	}))}
	openHTTP := func() (func(), bool) {
		resp, err := hc.Get(web.URL)
		if err != nil {
			if !errors.Is(err, spillway.ErrRejected) {
				t.Error(err)
			}
			return nil, true
		}
		return func() { resp.Body.Close() }, false
	}

	for _, limit := range []uint32{5, 17, 3, 0, 8} {
		c := cluster("users", limit)
		c.LrsServer = nil
		p.push(c)
		limitOf(t, users, int(limit))
		var byGRPC int
		eventually(t, "gRPC has the limit", func() bool {
			byGRPC = hold(openGRPC)
			return byGRPC == int(limit)
		})
		byHTTP := hold(openHTTP)
		t.Logf("max_requests %d: gRPC holds %d in flight, HTTP %d", limit, byGRPC, byHTTP)
		if byHTTP != byGRPC {
			t.Errorf("max_requests %d: HTTP holds %d in flight, gRPC %d", limit, byHTTP, byGRPC)
		}
	}
}
