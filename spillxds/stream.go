package spillxds

import (
	"context"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// A request is what is said in either form of the protocol.
type request struct {
	node    *corev3.Node // in the first of a stream only
	names   []string     // all that are subscribed to
	version string       // accepted last; state of the world only
	nonce   string       // of the response that this answers
	err     *statuspb.Status

	// Incremental only:
	subscribe, unsubscribe []string
	versions               map[string]string // accepted, in the first of a stream
}

// A stream is one of either form.
type stream interface {
	send(*request) error
	recv() (*answer, error)
}

// connected waits until there is a connection, or ctx ends. Streams are then opened
// to fail without one: told to wait, gRPC would take one that has just broken up
// again behind our back, whenever that may be, and it would look as if the control
// plane had been asked and said nothing. When there comes to be none, it tells why.
func (c *Client) connected(ctx context.Context, otherwise Kind) {
	for s := c.conn.GetState(); s != connectivity.Ready && s != connectivity.Shutdown; s = c.conn.GetState() {
		if s == connectivity.TransientFailure {
			c.lost(otherwise, whyNot(ctx, c.conn))
		}
		c.conn.Connect()
		if !c.conn.WaitForStateChange(ctx, s) {
			return
		}
	}
}

// whyNot returns why there is no connection, as a stream reports that is opened
// without one; nil if there is one now.
func whyNot(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := open(ctx, conn, false)
	return err
}

// open opens a stream.
func open(ctx context.Context, conn grpc.ClientConnInterface, incremental bool) (stream, error) {
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	if incremental {
		s, err := client.DeltaAggregatedResources(ctx)
		return delta{s}, err
	}
	s, err := client.StreamAggregatedResources(ctx)
	return world{s}, err
}

// world speaks the state-of-the-world form.
type world struct {
	discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
}

func (w world) send(r *request) error {
	return w.Send(&discoveryv3.DiscoveryRequest{
		Node: r.node, TypeUrl: clusterType, ResourceNames: r.names,
		VersionInfo: r.version, ResponseNonce: r.nonce, ErrorDetail: r.err,
	})
}

func (w world) recv() (*answer, error) {
	m, err := w.Recv()
	if err != nil {
		return nil, err
	}
	a := &answer{typeURL: m.GetTypeUrl(), version: m.GetVersionInfo(), nonce: m.GetNonce(), complete: true}
	for _, body := range m.GetResources() {
		a.resources = append(a.resources, named{body: body})
	}
	return a, nil
}

// delta speaks the incremental form.
type delta struct {
	discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func (d delta) send(r *request) error {
	return d.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: r.node, TypeUrl: clusterType,
		ResourceNamesSubscribe: r.subscribe, ResourceNamesUnsubscribe: r.unsubscribe,
		InitialResourceVersions: r.versions, ResponseNonce: r.nonce, ErrorDetail: r.err,
	})
}

func (d delta) recv() (*answer, error) {
	m, err := d.Recv()
	if err != nil {
		return nil, err
	}
	a := &answer{
		typeURL: m.GetTypeUrl(), version: m.GetSystemVersionInfo(), nonce: m.GetNonce(),
		removed: m.GetRemovedResources(),
	}
	for _, r := range m.GetResources() {
		a.resources = append(a.resources, named{r.GetName(), r.GetVersion(), r.GetResource()})
	}
	return a, nil
}
