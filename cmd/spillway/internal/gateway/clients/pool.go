package clients

import "sync/atomic"

// A Pool limits the requests to a cluster. If it is full, a request that waits for its client
// is evicted. The zero Pool has no slots: call [Pool.Limit] first.
type Pool struct {
	used     atomic.Int64 // by requests, without calls of gRPC
	requests atomic.Int64 // the most of them
	calls    atomic.Int64 // the most calls of gRPC, many of which share a connection
}

// Limit sets the maximum numbers of requests and of gRPC calls in flight.
func (p *Pool) Limit(requests, calls int) {
	p.requests.Store(int64(requests))
	p.calls.Store(int64(calls))
}

// Enter adds an exchange that is sent to the cluster, and reports whether it takes a slot,
// which a gRPC call does not. The result must be passed to [Pool.Leave].
func (p *Pool) Enter(x *Exchange) (takes bool) {
	if takes = !x.stream.Load(); takes && p.used.Add(1) > p.requests.Load() && x.client != nil {
		x.client.owner.evictFrom(p)
	}
	x.pool.Store(p)
	return takes
}

// Leave must be called when the exchange ends, with the result of [Pool.Enter].
func (p *Pool) Leave(x *Exchange, takes bool) {
	x.pool.Store(nil)
	if takes {
		p.used.Add(-1)
	}
}

// plenty returns the number of requests or gRPC calls in flight up to which the pool is not
// scarce.
func (p *Pool) plenty(calls bool) int {
	most := int(p.requests.Load())
	if calls {
		most = int(p.calls.Load())
	}
	return most - most/scarceShare
}
