package spillxds

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// StatsHandler returns a handler that counts for load reports what a gRPC channel
// sends to the cluster, each attempt by itself:
//
//	grpc.NewClient(target, grpc.WithStatsHandler(users.StatsHandler()), …)
//
// A call is issued when its headers are sent, so what a limit has refused before
// is not; it succeeds if it ends with the status OK.
func (c *Cluster) StatsHandler() stats.Handler { return &statsHandler{cluster: c} }

type statsHandler struct{ cluster *Cluster }

type attemptKey struct{}

// attempt is one attempt of a call. gRPC tells of some that they begin and never
// that they end; those have sent nothing.
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
