// Package upstream sends requests to the endpoints of a cluster: it chooses the endpoint,
// checks health, and applies the client-side policies.
package upstream

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// A Cluster sends requests to its endpoints. Its [Version] can be replaced. It is an
// [http.RoundTripper], and safe for concurrent use; call [Cluster.Replace] first.
type Cluster struct {
	name    string
	current atomic.Pointer[Version]
	work    processor
}

// New returns a cluster that has no version yet.
func New(name string) *Cluster { return &Cluster{name: name} }

// Current returns the version in use; nil before the first one.
func (x *Cluster) Current() *Version { return x.current.Load() }

// RoundTrip implements [http.RoundTripper].
func (x *Cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	return x.current.Load().throttles.RoundTrip(r)
}

// Replace replaces the version in use by u, and checks its endpoints until ctx ends. Requests
// that wait continue to wait, and the state of endpoints is kept. It is not for concurrent
// use.
func (x *Cluster) Replace(ctx context.Context, logger *slog.Logger, u *Version) {
	x.take(u)
	u.check(ctx, logger)
}

func (x *Cluster) take(u *Version) {
	u.endpoints.work = &x.work
	old := x.current.Load()
	if old == nil {
		x.current.Store(u)
		return
	}
	if old.queue != nil && u.queue != nil {
		old.queue.Update(u.queue.Limits())
		u.queue = old.queue
	}
	if old.checker != nil {
		old.checker.stop() // so that nothing changes while it is taken over
	}
	u.endpoints.inherit(old.endpoints, u.config.Health != nil && old.config.Health != nil)
	x.current.Store(u)
	old.Close()
}

// Close closes the version in use.
func (x *Cluster) Close() { x.current.Load().Close() }

// Stats is a snapshot of a [Cluster].
type Stats struct {
	Egress    egress.Stats
	Retry     retry.Stats
	Budget    budget.Stats // of the retries; zero where there are none
	Endpoints []EndpointStats
	Panics    bool        // no endpoint passes its checks: all are used
	Queue     turns.Stats // of a batch cluster
}

// Stats returns the levels at the time now.
func (x *Cluster) Stats(now time.Time) Stats {
	u := x.current.Load()
	policies, used := u.policies.Stats()[x.name]
	s := Stats{Egress: policies, Endpoints: u.endpoints.stats(now), Panics: u.endpoints.set.Panics(now)}
	s.Egress.Throttle = u.throttles.throttle.Stats(now)
	switch { // the limits exist before the first request, too
	case u.limits != nil:
		s.Egress.Inflight = u.limits.Limiter().Stats(now)
	case u.limiter != nil:
		s.Egress.Inflight = u.limiter.Stats(now)
	case !used && u.config.Inflight.MaxRequests >= 0:
		s.Egress.Inflight.MaxRequests = cmp.Or(u.config.Inflight.MaxRequests, inflight.DefaultMaxRequests)
	}
	s.Retry = u.retries.Stats(now)
	if b := u.retries.Budget; b != nil {
		s.Budget = b.Stats(now)
	}
	if u.queue != nil {
		s.Queue = u.queue.Stats()
	}
	return s
}
