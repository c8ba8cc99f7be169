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
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// A Cluster sends requests to its endpoints. Its [Version] can be replaced. It is an
// [http.RoundTripper], and safe for concurrent use; call [Cluster.Replace] first.
type Cluster struct {
	name    string
	current atomic.Pointer[Version]
	limiter *inflight.Limiter // of requests in flight, also by former versions
	work    processor
}

// New returns a cluster that has no version yet.
func New(name string) *Cluster {
	limiter, _ := inflight.New(inflight.Config{}) // its defaults are valid
	return &Cluster{name: name, limiter: limiter}
}

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
	u.endpoints.work = &x.work
	_ = x.limiter.Update(inflight.Config{MaxInFlight: u.Config.Inflight.MaxInFlight}) // it was checked
	old := x.current.Load()
	if old != nil {
		if old.Queue != nil && u.Queue != nil {
			old.Queue.Update(u.Queue.Limits())
			u.Queue = old.Queue
		}
		old.stop() // so that nothing changes while it is taken over
		u.endpoints.inherit(old.endpoints, u.Config.Health != nil && old.Config.Health != nil)
	}
	x.current.Store(u)
	if old != nil {
		old.Close()
	}
	u.watch(ctx, logger)
}

// Close closes the version in use.
func (x *Cluster) Close() { x.current.Load().Close() }

// Stats is a snapshot of a [Cluster].
type Stats struct {
	Egress    egress.Stats
	Retry     retry.Stats
	Budget    budget.Stats // of the retries; zero without retries
	Endpoints []EndpointStats
	Panics    bool        // no endpoint passes its checks: all are used
	Queue     turns.Stats // of a batch cluster
	Costs     cost.Stats  // of requests; zero if they are not learned
}

// Stats returns the levels at the time now.
func (x *Cluster) Stats(now time.Time) Stats {
	u := x.current.Load()
	policies := u.policies.Stats(now)[x.name]
	s := Stats{Egress: policies, Endpoints: u.endpoints.stats(now), Panics: u.endpoints.set.Panics(now)}
	s.Egress.Throttle = u.throttles.throttle.Stats(now)
	if u.limits != nil || u.Config.Inflight.MaxInFlight >= 0 { // the limit exists before the first request, too
		s.Egress.InFlight = u.Limiter.Stats(now)
	}
	s.Retry = u.retries.Stats(now)
	if b := u.retries.Budget; b != nil {
		s.Budget = b.Stats(now)
	}
	if u.Queue != nil {
		s.Queue = u.Queue.Stats()
	}
	if u.costs != nil {
		s.Costs = u.costs.Stats(now)
	}
	return s
}

// EndpointStats is a snapshot of an endpoint.
type EndpointStats struct {
	Address string
	Busy    int           // attempts in flight
	Total   uint64        // attempts
	Errors  uint64        // of them, failed ones
	Answers uint64        // of them, those with an answer
	Took    time.Duration // all answers, up to their heads
	State   balance.State // why it is skipped
	Weight  float64       // relative to the mean
	Failed  bool          // the last connection failed less than 10 s ago, and no answer came since
	Trouble string        // why there was no connection, of the last time that there was none

	Health       Health // by its checks
	ChecksTotal  uint64 // checks that have ended
	SkippedTotal uint64 // checks that were not made, as requests were served
	Reason       string // of the last check that failed
}

func (e *endpoints) stats(now time.Time) []EndpointStats {
	all := make([]EndpointStats, 0, len(e.all))
	at := int64(now.Sub(e.set.Start()))
	for i, x := range e.all {
		all = append(all, EndpointStats{
			Address: x.address, Busy: x.Busy(), Total: x.total.Load(),
			Errors: x.errors.Load(), Answers: x.answers.Load(), Took: time.Duration(x.took.Load()), State: e.set.State(now, x.Endpoint), Weight: e.set.Weight(i),
			Failed: x.lost.Load() && x.failed.Load() >= at-int64(lose), Trouble: *cmp.Or(x.trouble.Load(), new(string)),
			Health: x.health.is(), ChecksTotal: x.health.checks.Load(), SkippedTotal: x.health.skipped.Load(),
			Reason: *cmp.Or(x.health.reason.Load(), new(string)),
		})
	}
	return all
}
