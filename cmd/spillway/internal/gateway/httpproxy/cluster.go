package httpproxy

import (
	"sync/atomic"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// A cluster is where requests are sent, and counts those under way.
type cluster struct {
	*upstream.Cluster

	used atomic.Int64 // without calls of gRPC
}

// enter counts a request. If there is no room for it, one that waits for its client is evicted.
func (x *cluster) enter(r *exchange) {
	if x.used.Add(1) > int64(x.Current().Places(false)) && r.client != nil {
		r.client.owner.evictFrom(x)
	}
}

// plenty is how many requests, or calls of gRPC, may be under way while there is still room
// for others.
func (x *cluster) plenty(calls bool) int {
	most := x.Current().Places(calls)
	return most - most/scarceShare
}
