package clients

import "sync/atomic"

// A Pool has the places of a cluster. If there is none for a request, one that waits for its
// client is evicted. The zero Pool has no places: [Pool.Limit] comes first.
type Pool struct {
	used     atomic.Int64 // by requests, without calls of gRPC
	requests atomic.Int64 // the most of them
	calls    atomic.Int64 // the most calls of gRPC, many of which share a connection
}

// Limit changes how many requests, and how many calls of gRPC, may be under way.
func (p *Pool) Limit(requests, calls int) {
	p.requests.Store(int64(requests))
	p.calls.Store(int64(calls))
}

// Enter takes in an exchange that is sent to the cluster, and reports whether it takes a
// place, which a call of gRPC does not. [Pool.Leave] must be told that.
func (p *Pool) Enter(x *Exchange) (takes bool) {
	if takes = !x.stream.Load(); takes && p.used.Add(1) > p.requests.Load() && x.client != nil {
		x.client.owner.evictFrom(p)
	}
	x.pool.Store(p)
	return takes
}

// Leave is for an exchange that has its answer.
func (p *Pool) Leave(x *Exchange, takes bool) {
	x.pool.Store(nil)
	if takes {
		p.used.Add(-1)
	}
}

// plenty is how many requests, or calls of gRPC, may be under way while there is still room
// for others.
func (p *Pool) plenty(calls bool) int {
	most := int(p.requests.Load())
	if calls {
		most = int(p.calls.Load())
	}
	return most - most/scarceShare
}
