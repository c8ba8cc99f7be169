package spillxds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/invalid"
)

// maxResponse bounds a response in memory. A control plane that sends everything
// it has in one goes soon beyond the 4 MiB of gRPC.
const maxResponse = 64 << 20

// A Client is one connection to a control plane: it applies the limits that it receives, and
// reports load. Clusters that it knows keep their last limits when the connection is lost.
// It is safe for concurrent use; make one with [New] and close it.
type Client struct {
	config   Config
	registry *inflight.Registry
	conn     *grpc.ClientConn
	node     *corev3.Node
	table    *table

	ctx      context.Context //nolint:containedctx // its goroutines live as long as the Client
	cancel   context.CancelFunc
	running  sync.WaitGroup
	closing  chan struct{} // closed for the last report
	reported sync.WaitGroup
	closed   func() error

	mu    sync.Mutex
	stats Stats

	telling sync.Mutex // one event at a time
}

// New returns a Client that connects in the background, or an error that names
// the field of c that is wrong.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	b := config.Bootstrap
	options := append(b.options, //nolint:gocritic // a Bootstrap serves one Client
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           grpcbackoff.Config{BaseDelay: config.BackoffBase, Multiplier: 1.6, Jitter: 0.2, MaxDelay: config.BackoffMax},
			MinConnectTimeout: 20 * time.Second,
		}),
		// A connection that is silently gone is noticed, as in gRPC's own client.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)),
	)
	conn, err := grpc.NewClient(b.target, append(options, config.DialOptions...)...)
	if err != nil {
		b.close()
		return nil, errors.New("spillxds: bootstrap: xds_servers[0].server_uri and its credentials do not go together")
	}
	c := &Client{config: config, registry: config.Registry, conn: conn, node: b.node, closing: make(chan struct{})}
	c.table = newTable(c)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.closed = sync.OnceValue(c.close)
	c.running.Go(func() { c.watch(c.ctx) })
	if config.Reports != Never {
		c.reported.Go(func() { c.report(c.ctx) })
	}
	return c, nil
}

// Cluster returns the limits of a cluster, from now on kept up to date. Until the
// control plane has answered they are the limits that were in force already, or else
// the defaults; [Cluster.Ready] waits for the answer.
//
// With a Service in the key, the limits follow the resource only while that is
// its EDS service. Leave it empty unless requests are sent to the endpoints of
// that service and no other.
func (c *Client) Cluster(key inflight.Key) (*Cluster, error) {
	switch {
	case key.Cluster == "" || len(key.Cluster) > maxName:
		return nil, invalid.Field("spillxds", "Key.Cluster", key.Cluster, "1 to %d bytes long", maxName)
	case len(key.Service) > maxName:
		return nil, invalid.Field("spillxds", "Key.Service", key.Service, "at most %d bytes long", maxName)
	case strings.HasPrefix(key.Cluster, "xdstp:"):
		return nil, invalid.Field("spillxds", "Key.Cluster", key.Cluster, "a plain name: names of the form xdstp: (gRFC A47) are not supported")
	case c.ctx.Err() != nil:
		return nil, errors.New("spillxds: the Client is closed")
	}
	s, err := c.table.hold(key)
	if err != nil {
		return nil, err
	}
	return &Cluster{s, sync.OnceFunc(func() { c.table.drop(s) })}, nil
}

// Registry returns the limiters that the Client keeps up to date, for other callers of the
// same clusters, such as the load balancing policy of package spillgrpc. Take a [Cluster] of
// the same key to have its limit set.
func (c *Client) Registry() *inflight.Registry { return c.registry }

// Close sends a last report, if there is a server to take it, and ends the
// connection. It returns an error if drops remain that could not be reported. The
// limits stay as they are. Any further Close returns the same.
func (c *Client) Close() error { return c.closed() }

func (c *Client) close() error {
	close(c.closing)
	timer := time.AfterFunc(c.config.FlushTimeout, c.cancel)
	defer timer.Stop()
	if c.Stats(time.Now()).Interval == 0 && c.table.unreported() == 0 {
		c.cancel() // nobody waits for a report, and there is none
	}
	c.reported.Wait()
	c.cancel()
	c.running.Wait()
	err := c.conn.Close()
	c.config.Bootstrap.close()
	if n := c.table.unreported(); n > 0 {
		err = errors.Join(err, fmt.Errorf("spillxds: closed with %d dropped requests not reported", n))
	}
	c.table.close()
	return err
}

// tell passes events on. If the Observer panics, it receives that as an event.
func (c *Client) tell(events ...Event) {
	if c.config.Observer == nil || len(events) == 0 {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	for _, e := range events {
		if err := c.observe(e); err != nil {
			_ = c.observe(Event{Kind: Panicked, Cluster: e.Cluster, Err: err}) // an Observer that panics again is counted
		}
	}
}

func (c *Client) count(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}
