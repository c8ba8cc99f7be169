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

// Enter adds an exchange that is sent to the cluster. It takes a slot, unless it is a gRPC call.
// [Pool.Leave] must be called when it ends.
func (p *Pool) Enter(x *Exchange) {
	if x.slot = !x.stream.Load(); x.slot && p.used.Add(1) > p.requests.Load() && x.client != nil {
		x.client.owner.evictFrom(p)
	}
	x.pool.Store(p)
}

// Leave removes an exchange, and frees its slot.
func (p *Pool) Leave(x *Exchange) {
	x.pool.Store(nil)
	if x.slot {
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
