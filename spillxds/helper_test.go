package spillxds_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
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

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/spillxds"
)

const nodeID = "spillway-test"

// must returns v of what cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// eventually waits, until ok, at most the time limit of a hung test.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("never: %s", what)
		}
	}
}

// cluster returns a Cluster resource with a limit, which reports its loads.
func cluster(name string, maxRequests uint32) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
			EdsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: new(corev3.AggregatedConfigSource)}},
		},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			{MaxRequests: wrapperspb.UInt32(maxRequests)},
		}},
		LrsServer: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: new(corev3.SelfConfigSource)}},
	}
}

// bad returns a Cluster resource that is not valid.
func bad(name string) *clusterv3.Cluster {
	c := cluster(name, 7)
	c.CircuitBreakers.Thresholds[0].Priority = 99
	return c
}

// A plane is a control plane of go-control-plane on loopback, with a load
// reporting service, that can be killed and started again.
type plane struct {
	t         testing.TB
	addr      string
	cache     cache.SnapshotCache
	loads     *loads
	version   int
	resources map[resource.Type][]types.Resource

	mu      sync.Mutex
	server  *grpc.Server
	cancel  context.CancelFunc
	serving sync.WaitGroup
	acks    int
	nacks   []time.Time
	details []string
}

func newPlane(t testing.TB) *plane {
	p := &plane{
		t: t, loads: newLoads(), resources: map[resource.Type][]types.Resource{},
		cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil),
	}
	p.start(freeport.Address(t))
	t.Cleanup(p.kill)
	return p
}

// start serves at addr.
func (p *plane) start(addr string, options ...grpc.ServerOption) {
	p.t.Helper()
	var listener net.Listener
	eventually(p.t, "the address is free", func() bool {
		var err error
		listener, err = net.Listen("tcp", addr)
		return err == nil
	})
	p.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(ctx, p.cache, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			p.saw(r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail().GetMessage())
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			p.saw(r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail().GetMessage())
			return nil
		},
	}))
	lrsv3.RegisterLoadReportingServiceServer(s, p.loads)
	p.server, p.cancel = s, cancel
	p.serving.Go(func() { _ = s.Serve(listener) })
}

func (p *plane) saw(typeURL, nonce, detail string) {
	if nonce == "" || typeURL != resource.ClusterType {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if detail == "" {
		p.acks++
		return
	}
	p.nacks = append(p.nacks, time.Now())
	p.details = append(p.details, detail)
}

func (p *plane) rejections() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.nacks...)
}

// kill ends the control plane as a crash would.
func (p *plane) kill() {
	p.cancel()
	p.server.Stop()
	p.serving.Wait()
}

// push makes clusters the only ones.
func (p *plane) push(clusters ...*clusterv3.Cluster) {
	p.t.Helper()
	p.resources[resource.ClusterType] = nil
	for _, c := range clusters {
		p.resources[resource.ClusterType] = append(p.resources[resource.ClusterType], c)
	}
	p.publish()
}

func (p *plane) publish() {
	p.t.Helper()
	p.version++
	s := must(cache.NewSnapshot(fmt.Sprint(p.version), p.resources))
	if err := p.cache.SetSnapshot(context.Background(), nodeID, s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) bootstrapText() []byte {
	return fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": %q, "locality": {"zone": "here"}}
	}`, p.addr, nodeID)
}

// client returns a Client of p, which is closed at the end.
func (p *plane) client(c spillxds.Config) *spillxds.Client {
	p.t.Helper()
	c.Bootstrap = must(spillxds.ParseBootstrap(p.bootstrapText()))
	if c.BackoffBase == 0 {
		c.BackoffBase, c.BackoffMax = 20*time.Millisecond, 100*time.Millisecond
	}
	if c.MinReportInterval == 0 {
		c.MinReportInterval = 10 * time.Millisecond
	}
	client, err := spillxds.New(c)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { client.Close() })
	return client
}

func key(name string) inflight.Key { return inflight.Key{Cluster: name} }

// limitOf waits until the limit of a cluster is the expected one.
func limitOf(t testing.TB, c *spillxds.Cluster, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("max_requests is %d", want), func() bool { return c.Limiter().Stats(time.Now()).MaxInFlight == want })
}

// total is what a cluster has reported.
type total struct{ issued, succeeded, failed, dropped uint64 }

// loads is a load reporting service that adds up the reports that it receives.
type loads struct {
	lrsv3.UnimplementedLoadReportingServiceServer

	mu         sync.Mutex
	interval   *durationpb.Duration
	totals     map[string]total // by cluster
	localities map[string]total // by zone
	inProgress map[string]uint64
	invalid    []error
	first      []*lrsv3.LoadStatsRequest
	intervals  []time.Duration
	reports    int
	cut        func(report int) bool // whether to end the stream after a report
	change     chan *lrsv3.LoadStatsResponse
}

func newLoads() *loads {
	return &loads{
		interval: durationpb.New(20 * time.Millisecond), totals: map[string]total{},
		localities: map[string]total{}, inProgress: map[string]uint64{}, change: make(chan *lrsv3.LoadStatsResponse, 10),
	}
}

func (l *loads) StreamLoadStats(st lrsv3.LoadReportingService_StreamLoadStatsServer) error {
	first, err := st.Recv()
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.first = append(l.first, first)
	interval := l.interval
	l.mu.Unlock()
	if err := st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: interval}); err != nil {
		return err
	}
	for {
		r, err := st.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case m := <-l.change:
			if err := st.Send(m); err != nil {
				return err
			}
		default:
		}
		if l.add(r) {
			return fmt.Errorf("cut off")
		}
	}
}

// add adds a report up, and reports whether to cut the stream off.
func (l *loads) add(r *lrsv3.LoadStatsRequest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports++
	if err := r.ValidateAll(); err != nil {
		l.invalid = append(l.invalid, err)
	}
	for _, c := range r.GetClusterStats() {
		sum := l.totals[c.GetClusterName()]
		sum.dropped += c.GetTotalDroppedRequests()
		l.inProgress[c.GetClusterName()] = 0
		for _, u := range c.GetUpstreamLocalityStats() {
			one := total{issued: u.GetTotalIssuedRequests(), succeeded: u.GetTotalSuccessfulRequests(), failed: u.GetTotalErrorRequests()}
			zone := l.localities[u.GetLocality().GetZone()]
			l.localities[u.GetLocality().GetZone()] = zone.plus(one)
			sum = sum.plus(one)
			l.inProgress[c.GetClusterName()] += u.GetTotalRequestsInProgress()
		}
		l.totals[c.GetClusterName()] = sum
		l.intervals = append(l.intervals, c.GetLoadReportInterval().AsDuration())
	}
	return l.cut != nil && l.cut(l.reports)
}

func (t total) plus(o total) total {
	return total{t.issued + o.issued, t.succeeded + o.succeeded, t.failed + o.failed, t.dropped + o.dropped}
}

// users returns what the cluster of that name has reported.
func (l *loads) users() total {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals["users"]
}

func (l *loads) streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.first)
}
