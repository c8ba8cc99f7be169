package spillxds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// maxLocalities is how many localities of a cluster are counted apart. Requests to
// any further one are counted where the locality is not known.
const maxLocalities = 256

// ErrNotFound says that the control plane does not know the cluster.
var ErrNotFound = errors.New("spillxds: the control plane has no such cluster")

// errSilent is ErrNotFound where the control plane has not answered a request for the
// cluster at all. It may hold its answer back.
var errSilent = fmt.Errorf("%w: it has not answered. A snapshot cache of go-control-plane in ADS mode answers a client only that names all of its "+
	"clusters: set Config.Wildcard or Config.Incremental", ErrNotFound)

// A Cluster is the limits and the load of one backend cluster, kept up to date by
// the [Client] that it is from. It is safe for concurrent use.
type Cluster struct {
	*shared
	release func()
}

// shared is what all Clusters of one key have in common.
type shared struct {
	key      inflight.Key
	client   *Client
	limiter  *inflight.Limiter
	unshare  func()
	retries  retries
	fallback retry.Strategy // where the user brings none

	loads  atomic.Pointer[map[Locality]*Load] // replaced as a whole
	adding sync.Mutex
	passed counter // rejections by gates that only observe

	// With the table locked:
	holders int
	service string    // of the resource
	wanted  bool      // by the resource: load reports
	since   time.Time // when the counts began that are not reported yet
}

// set puts the limits of r in force, if they are for this count: one that is of
// an EDS service leaves the limits of another service alone.
func (s *shared) set(r *resource) {
	if s.key.Service != "" && s.key.Service != r.service {
		return
	}
	s.service, s.wanted = r.service, r.report
	s.retries.limits.Store(&r.limits)
	s.limiter.SetMaxInFlight(r.limits.MaxRequests)
	s.client.wanted(s)
}

// Limiter returns the in-flight limit of the cluster, for callers that ask it directly.
func (c *Cluster) Limiter() *inflight.Limiter { return c.limiter }

// Egress returns config with the limits of the cluster in it: the in-flight limit,
// and a bound on retries around config.Retry, which nil makes [retry.Budgeted]
// with its defaults and a budget for the cluster. config.MaxRequests and config.Hedge must be zero,
// which egress.New checks. For the retries of a service config, config.Retry is Strategy of the Imported of package spillgrpc.
// All clients made of it, and of other calls of Egress,
// share the limits.
//
// If config.InFlightMode is Observe, calls that would be rejected are admitted and are not
// reported as dropped.
func (c *Cluster) Egress(config egress.Config) egress.Config {
	config.InFlight = c.limiter
	inner := config.Retry
	if inner == nil {
		inner = c.fallback
	}
	config.Retry = &strategy{inner, &c.retries}
	if config.InFlightMode == spillway.ModeObserve {
		config.Observer = c.passing(config.Observer)
	}
	return config
}

// passing counts rejections that the limiter has counted as drops, but that observe mode has
// admitted.
func (c *Cluster) passing(next spillway.Observer) spillway.Observer {
	return spillway.ObserverFunc(func(e spillway.Event) {
		if e.Policy == "inflight" && e.Rejected && e.Mode == spillway.ModeObserve {
			c.passed.Add(1)
		}
		if next != nil {
			next.Observe(e)
		}
	})
}

// Load returns the count of requests to a locality. It is quick, and the same for
// the same locality.
func (c *Cluster) Load(l Locality) *Load {
	if load := (*c.loads.Load())[l]; load != nil {
		return load
	}
	c.adding.Lock()
	defer c.adding.Unlock()
	known := *c.loads.Load()
	if len(known) >= maxLocalities {
		l = Locality{}
	}
	if load := known[l]; load != nil {
		return load
	}
	more, load := maps.Clone(known), new(Load)
	more[l] = load
	c.loads.Store(&more)
	return load
}

// at returns the count for an endpoint.
func (c *Cluster) at(endpoint string) *Load {
	if f := c.client.config.Locality; f != nil {
		return c.Load(f(endpoint))
	}
	return c.Load(Locality{})
}

// Ready waits until the control plane has set the limits. It returns an error if
// ctx ends first, the Client is closed, or the control plane has no such cluster
// ([ErrNotFound]). Nothing needs to wait for it: until then the defaults of A32
// are in force.
func (c *Cluster) Ready(ctx context.Context) error {
	for {
		state, changed, why := c.client.table.stateOf(c.key.Cluster)
		switch state {
		case current:
			return nil
		case missing:
			return why
		case unknown:
		}
		select {
		case <-changed:
		case <-c.client.ctx.Done():
			return fmt.Errorf("spillxds: %w", c.client.ctx.Err())
		case <-ctx.Done():
			return fmt.Errorf("spillxds: waiting for cluster %.100q: %w", c.key.Cluster, ctx.Err())
		}
	}
}

// Close gives the Cluster up: its holder sends no more. What it counted is
// still reported. The last one who does so for a cluster ends its subscription.
// Any further Close does nothing.
func (c *Cluster) Close() { c.release() }
