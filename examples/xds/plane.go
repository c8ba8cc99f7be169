package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A plane is a control plane: it serves the limits that its user sets, to every node,
// and prints the load reports that come back.
type plane struct {
	lrsv3.UnimplementedLoadReportingServiceServer

	cache    cache.SnapshotCache
	server   *grpc.Server
	cancel   context.CancelFunc
	serving  sync.WaitGroup
	interval time.Duration // of load reports

	mu      sync.Mutex
	out     io.Writer
	limits  map[string]uint32 // by cluster
	version int
}

// everyNode makes all nodes see the same snapshot.
type everyNode struct{}

func (everyNode) ID(*corev3.Node) string { return "every node" }

// newPlane serves on listener until it is closed.
func newPlane(listener net.Listener, out io.Writer, interval time.Duration) *plane {
	ctx, cancel := context.WithCancel(context.Background())
	p := &plane{
		// false: a client that asks for some clusters gets just these.
		cache:  cache.NewSnapshotCache(false, everyNode{}, nil),
		server: grpc.NewServer(), cancel: cancel, interval: interval,
		out: out, limits: map[string]uint32{},
	}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.server, server.NewServer(ctx, p.cache, nil))
	lrsv3.RegisterLoadReportingServiceServer(p.server, p)
	p.serving.Go(func() { _ = p.server.Serve(listener) }) // until Stop
	return p
}

func (p *plane) close() {
	p.cancel()
	p.server.Stop()
	p.serving.Wait()
}

// set changes the limit of a cluster.
func (p *plane) set(cluster string, maxRequests uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits[cluster] = maxRequests
	p.version++
	var all []types.Resource
	for name, limit := range p.limits {
		all = append(all, clusterOf(name, limit))
	}
	s, err := cache.NewSnapshot(strconv.Itoa(p.version), map[resource.Type][]types.Resource{resource.ClusterType: all})
	if err != nil {
		return err
	}
	return p.cache.SetSnapshot(context.Background(), everyNode{}.ID(nil), s)
}

// clusterOf is the resource of a cluster: a limit, and the wish to hear of loads.
func clusterOf(name string, maxRequests uint32) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name,
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			{MaxRequests: wrapperspb.UInt32(maxRequests)},
		}},
		LrsServer: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: new(corev3.SelfConfigSource)}},
	}
}

// StreamLoadStats implements the load reporting service.
func (p *plane) StreamLoadStats(st lrsv3.LoadReportingService_StreamLoadStatsServer) error {
	if _, err := st.Recv(); err != nil { // who it is
		return err
	}
	wish := &lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(p.interval)}
	if err := st.Send(wish); err != nil {
		return err
	}
	for {
		report, err := st.Recv()
		if err == io.EOF { //nolint:errorlint // the client has ended the stream
			return nil
		}
		if err != nil {
			return err
		}
		p.print(report)
	}
}

func (p *plane) print(report *lrsv3.LoadStatsRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range report.GetClusterStats() {
		var issued, inProgress uint64
		for _, u := range c.GetUpstreamLocalityStats() {
			issued += u.GetTotalIssuedRequests()
			inProgress += u.GetTotalRequestsInProgress()
		}
		fmt.Fprintf(p.out, "control plane: %s issued %d, has %d in progress, dropped %d in %v\n", c.GetClusterName(),
			issued, inProgress, c.GetTotalDroppedRequests(), c.GetLoadReportInterval().AsDuration().Round(time.Millisecond))
	}
}
