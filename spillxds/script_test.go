package spillxds_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway/spillxds"
)

// A script is a control plane that does nothing by itself: the test receives and
// sends, in virtual time.
type script struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	lrsv3.UnimplementedLoadReportingServiceServer

	streams chan *conversation
	reports chan *reports
}

// A conversation is one stream of either form.
type conversation struct {
	requests chan *discoveryv3.DiscoveryRequest
	deltas   chan *discoveryv3.DeltaDiscoveryRequest
	send     func(*discoveryv3.DiscoveryResponse) error
	sendDiff func(*discoveryv3.DeltaDiscoveryResponse) error
	end      chan error
}

// reports is one stream of load reports.
type reports struct {
	lrsv3.LoadReportingService_StreamLoadStatsServer

	requests chan *lrsv3.LoadStatsRequest
	end      chan error
}

func pass[T any](recv func() (*T, error), to chan<- *T) {
	defer close(to)
	for {
		m, err := recv()
		if err != nil {
			return
		}
		to <- m
	}
}

func (s *script) StreamAggregatedResources(st discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	c := &conversation{requests: make(chan *discoveryv3.DiscoveryRequest, 1000), send: st.Send, end: make(chan error)}
	go pass(st.Recv, c.requests)
	return s.hold(st.Context(), c)
}

func (s *script) DeltaAggregatedResources(st discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	c := &conversation{deltas: make(chan *discoveryv3.DeltaDiscoveryRequest, 1000), sendDiff: st.Send, end: make(chan error)}
	go pass(st.Recv, c.deltas)
	return s.hold(st.Context(), c)
}

func (s *script) hold(ctx context.Context, c *conversation) error {
	s.streams <- c
	select {
	case err := <-c.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *script) StreamLoadStats(st lrsv3.LoadReportingService_StreamLoadStatsServer) error {
	r := &reports{st, make(chan *lrsv3.LoadStatsRequest, 1000), make(chan error)}
	read := make(chan error, 1)
	go func() {
		for {
			m, err := st.Recv()
			if err != nil {
				read <- err
				return
			}
			r.requests <- m
		}
	}()
	s.reports <- r
	select {
	case err := <-r.end:
		return err
	case err := <-read:
		if err == io.EOF {
			return nil
		}
		return err
	}
}

// played runs test in a bubble, with a Client of a script.
func played(t *testing.T, config spillxds.Config, test func(t *testing.T, s *script, c *spillxds.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		s := &script{streams: make(chan *conversation, 100), reports: make(chan *reports, 100)}
		server := grpc.NewServer()
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
		lrsv3.RegisterLoadReportingServiceServer(server, s)
		go server.Serve(listener)
		config.Bootstrap = must(spillxds.ParseBootstrap([]byte(`{
			"xds_servers": [{"server_uri": "passthrough:///plane", "channel_creds": [{"type": "insecure"}]}],
			"node": {"id": "n1", "cluster": "c1", "metadata": {"k": "v"}}}`)))
		config.DialOptions = []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		}
		client := must(spillxds.New(config))
		test(t, s, client)
		client.Close()
		server.Stop()
	})
}
