package xds

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// thresholds are limits in the form that a control plane sends.
type thresholds = clusterv3.CircuitBreakers_Thresholds

// most returns thresholds with max_requests.
func most(requests uint32) *thresholds { return &thresholds{MaxRequests: wrapperspb.UInt32(requests)} }

// A server is a control plane on loopback with one cluster, "remote", and a load
// reporting service that adds up.
type server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	lrsv3.UnimplementedLoadReportingServiceServer

	address string
	kill    func()
	ended   atomic.Int64 // streams of limits

	mu        sync.Mutex
	limits    *thresholds
	version   int
	changed   chan struct{} // closed by the next change
	nodes     []string      // one for each stream
	dropped   uint64
	succeeded uint64
}

func newServer(t *testing.T, limits *thresholds, options ...grpc.ServerOption) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: ln.Addr().String(), limits: limits, version: 1, changed: make(chan struct{})}
	g := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	lrsv3.RegisterLoadReportingServiceServer(g, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(ln) })
	s.kill = sync.OnceFunc(func() {
		g.Stop()
		serving.Wait()
	})
	t.Cleanup(s.kill)
	return s
}

// push replaces the limits.
func (s *server) push(limits *thresholds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// now returns the current resource, and a channel that reports the next change.
func (s *server) now() (*discoveryv3.DiscoveryResponse, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := anypb.New(&clusterv3.Cluster{
		Name:                 "remote",
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		CircuitBreakers:      &clusterv3.CircuitBreakers{Thresholds: []*thresholds{s.limits}},
		LrsServer:            &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: new(corev3.SelfConfigSource)}},
	})
	version := fmt.Sprint(s.version)
	return &discoveryv3.DiscoveryResponse{
		VersionInfo: version, Nonce: version, TypeUrl: all.GetTypeUrl(), Resources: []*anypb.Any{all},
	}, s.changed, err
}

// StreamAggregatedResources implements ADS.
func (s *server) StreamAggregatedResources(st discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	defer s.ended.Add(1)
	first, err := st.Recv()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.nodes = append(s.nodes, first.GetNode().GetId()+" of "+first.GetNode().GetCluster())
	s.mu.Unlock()
	for {
		r, changed, err := s.now()
		if err == nil {
			err = st.Send(r)
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-st.Context().Done():
			return st.Context().Err()
		}
	}
}

// StreamLoadStats implements LRS.
func (s *server) StreamLoadStats(st lrsv3.LoadReportingService_StreamLoadStatsServer) error {
	if _, err := st.Recv(); err != nil { // who it is
		return err
	}
	if err := st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Second)}); err != nil {
		return err
	}
	for {
		r, err := st.Recv()
		if err != nil {
			return err
		}
		s.add(r)
	}
}

func (s *server) add(r *lrsv3.LoadStatsRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.GetClusterStats() {
		s.dropped += c.GetTotalDroppedRequests()
		for _, l := range c.GetUpstreamLocalityStats() {
			s.succeeded += l.GetTotalSuccessfulRequests()
		}
	}
}

// streams returns the connected clients.
func (s *server) streams() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.nodes)
}

// reported returns the reports about the cluster.
func (s *server) reported() (dropped, succeeded uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped, s.succeeded
}
