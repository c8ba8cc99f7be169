package spillxds

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// DialOptions returns what [grpc.NewClient] needs for a channel whose attempts to the
// cluster are limited as gRFC A32 has it, and counted for load reports: a default service
// config that chooses the load balancing policy of package spillgrpc for the cluster, and
// [Cluster.StatsHandler]. Register that policy with the limits of the Client before:
//
//	balancer.Register(spillgrpc.NewBalancer(client.Registry()))
//
// The policy then chooses the endpoint by round_robin. A service config of the resolver
// replaces this one: name the policy there.
func (c *Cluster) DialOptions() []grpc.DialOption {
	type config struct {
		Cluster string `json:"cluster"`
		Service string `json:"edsServiceName,omitempty"` //nolint:tagliatelle // as spillgrpc has it
	}
	policies := []map[string]config{{"spillway_max_requests": {c.key.Cluster, c.key.Service}}}
	text, _ := json.Marshal(map[string][]map[string]config{"loadBalancingConfig": policies}) //nolint:errchkjson // of strings: never fails
	return []grpc.DialOption{grpc.WithDefaultServiceConfig(string(text)), grpc.WithStatsHandler(c.StatsHandler())}
}

// StatsHandler returns a handler that counts for load reports what a gRPC channel
// sends to the cluster, each attempt by itself:
//
//	grpc.NewClient(target, grpc.WithStatsHandler(users.StatsHandler()), …)
//
// A call is issued when its headers are sent, so a call that a limit has rejected before is
// not; it succeeds if it ends with the status OK.
func (c *Cluster) StatsHandler() stats.Handler { return &statsHandler{cluster: c} }

type statsHandler struct{ cluster *Cluster }

type attemptKey struct{}

// attempt is one attempt of a call. gRPC reports the beginning of some and never
// their end; those have sent nothing.
type attempt struct{ load atomic.Pointer[Load] }

// TagRPC implements [stats.Handler].
func (h *statsHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, attemptKey{}, new(attempt))
}

// HandleRPC implements [stats.Handler].
func (h *statsHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.OutHeader:
		load := h.cluster.Load(Locality{})
		if s.RemoteAddr != nil {
			load = h.cluster.at(s.RemoteAddr.String())
		}
		if a.load.CompareAndSwap(nil, load) {
			load.Begin()
		}
	case *stats.End:
		if load := a.load.Swap(nil); load != nil {
			load.End(s.Error == nil)
		}
	}
}

// TagConn implements [stats.Handler].
func (h *statsHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn implements [stats.Handler].
func (h *statsHandler) HandleConn(context.Context, stats.ConnStats) {}
