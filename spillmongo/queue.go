//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

import (
	"context"
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/seed90641741/spillway/inflight"
)

// queues are the queues in front of the pools of the servers, by address.
//
// The driver lets operations wait for a connection in the order of their arrival. As the size of a pool is
// known, nothing has to be measured to do better: twice as many operations as connections are let into the
// pool, so that no connection idles, and the others wait here, by criticality. Nothing is rejected.
type queues struct {
	connections uint64 // of a pool; 0: no limit

	mu  sync.Mutex // of who adds one
	all atomic.Pointer[map[string]*place]
}

// A place is one of those in front of a pool. All are alike.
type place = inflight.Limiter

// maxConnections is the largest size of a pool that has a queue.
const maxConnections = math.MaxInt32 / 2

// of returns the queue of a server, or nil if its pool has no limit.
func (q *queues) of(address string) *place {
	if q.connections == 0 || q.connections > maxConnections {
		return nil
	}
	if all := q.all.Load(); all != nil {
		if p := (*all)[address]; p != nil {
			return p
		}
	}
	return q.add(address)
}

func (q *queues) add(address string) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make(map[string]*place)
	if before := q.all.Load(); before != nil {
		all = maps.Clone(*before)
	}
	if p := all[address]; p != nil {
		return p
	}
	p, err := inflight.New(inflight.Config{MaxInFlight: 2 * int(q.connections), QueueDepth: math.MaxInt32})
	if err != nil { // the limits are valid
		return nil
	}
	all[address] = p
	q.all.Store(&all)
	return p
}

// checkOut takes a connection out of the pool of the server, after a wait in its queue. The conn that gets the connection
// gets the place as well.
func (s *server) checkOut(ctx context.Context) (*mnet.Connection, error) {
	place := s.deployment.queues.of(s.address())
	if place == nil {
		return s.Server.Connection(ctx)
	}
	if !place.TryAcquire() { // a limited context costs a timer only where there is a wait
		if err := place.Acquire(ctx); err != nil {
			return nil, err
		}
	}
	defer func() {
		if s.place == nil { // there is no connection, or the driver panics
			place.Release()
		}
	}()
	c, err := s.Server.Connection(ctx)
	if err == nil {
		s.place = place
	}
	return c, err
}
