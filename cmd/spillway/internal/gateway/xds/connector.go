package xds

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillxds"
)

// A Connector connects to control planes, one after the other. It keeps the in-flight counts
// and the limits when a control plane is replaced. The zero Connector is ready; it is safe for
// concurrent use.
type Connector struct {
	registry inflight.Registry

	mu     sync.Mutex
	planes []*plane // not closed
}

// Connect connects to a control plane: it is a [upstream.Connect].
func (c *Connector) Connect(x *config.XDS, logger *slog.Logger) (upstream.ControlPlane, error) {
	bootstrap, err := bootstrapOf(x)
	if err != nil {
		return nil, err
	}
	p := &plane{connector: c, logger: logger}
	all := spillxds.Config{Bootstrap: bootstrap, Registry: &c.registry, Observer: p.log}
	if x.TLS != nil && x.TLS.ServerName != "" {
		all.DialOptions = append(all.DialOptions, grpc.WithAuthority(x.TLS.ServerName))
	}
	if p.client, err = spillxds.New(all); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planes = append(c.planes, p)
	logger.Info("control plane: connecting", "address", x.Address) // another line reports success
	return p, nil
}

// bootstrapOf returns the equivalent of gRPC's bootstrap file.
func bootstrapOf(x *config.XDS) (*spillxds.Bootstrap, error) {
	type object map[string]any
	credentials := object{"type": "insecure"}
	if t := x.TLS; t != nil {
		files := map[string]string{"ca_certificate_file": t.CA, "certificate_file": t.Certificate, "private_key_file": t.Key}
		maps.DeleteFunc(files, func(_, name string) bool { return name == "" })
		credentials = object{"type": "tls", "config": files}
	}
	text, err := json.Marshal(object{
		"xds_servers": []object{{"server_uri": x.Address, "channel_creds": []object{credentials}}},
		"node":        object{"id": x.Node.ID, "cluster": x.Node.Cluster},
	})
	if err != nil {
		return nil, fmt.Errorf("xds: %w", err)
	}
	return spillxds.ParseBootstrap(text)
}

// plane is a [upstream.ControlPlane].
type plane struct {
	connector *Connector
	client    *spillxds.Client
	logger    *slog.Logger
	health    health
}

// Limits implements [upstream.ControlPlane].
func (p *plane) Limits(x config.ClusterXDS) (upstream.Limits, error) {
	p.health.hold(x.Cluster, p.client.Stats(time.Now()).Connected, time.Now())
	left := sync.OnceFunc(func() { p.health.leave(x.Cluster) })
	c, err := p.client.Cluster(inflight.Key{Cluster: x.Cluster, Service: x.Service})
	if err != nil {
		left()
		return nil, err
	}
	return &limits{c, left}, nil
}

func (p *plane) Close() error {
	c := p.connector
	c.mu.Lock()
	c.planes = slices.DeleteFunc(c.planes, func(other *plane) bool { return other == p })
	c.mu.Unlock()
	return p.client.Close()
}

// limits are [upstream.Limits].
type limits struct {
	*spillxds.Cluster

	left func()
}

func (l *limits) Close() {
	l.left()
	l.Cluster.Close()
}

// log logs the events between the proxy and the control plane, and keeps what is wrong.
func (p *plane) log(e spillxds.Event) {
	var accepted uint64
	if e.Kind == spillxds.Rejected {
		accepted = p.client.Stats(time.Now()).AcceptedTotal
	}
	p.health.see(&e, accepted, time.Now())
	switch e.Kind {
	case spillxds.Connected:
		p.logger.Info("control plane: connected")
	case spillxds.Updated:
		all := append([]any{"cluster", e.Cluster}, words(e.Limits)...)
		if e.Ignored != "" {
			all = append(all, "ignored", e.Ignored)
		}
		p.logger.Info("control plane: limits changed", all...)
	case spillxds.Removed:
		p.logger.Warn("control plane: the cluster is gone, its limits stay", append([]any{"cluster", e.Cluster}, words(e.Limits)...)...)
	case spillxds.NotFound:
		p.logger.Warn("control plane: there is no such cluster", "cluster", e.Cluster, "error", e.Err)
	case spillxds.Reporting:
		p.logger.Info("control plane: asks for load reports", "interval", e.Interval)
	default: // what went wrong
		if e.Kind == spillxds.Disconnected && !p.health.needed() {
			return // the connector is not used any more
		}
		p.logger.Warn("control plane: "+e.Kind.String()+", limits stay", "error", e.Err)
	}
}

// words returns limits in the form of a log line.
func words(l spillxds.Limits) []any {
	all := []any{"max_requests", l.MaxRequests}
	if l.Retries != math.MaxUint32 {
		all = append(all, "max_retries", l.Retries)
	}
	if l.RetryPercent > 0 {
		all = append(all, "retry_percent", l.RetryPercent)
	}
	return all
}
