package httpproxy

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillhttp"
)

// A cluster is where requests are sent. What it does so with can be replaced.
type cluster struct {
	name    string
	current atomic.Pointer[upstream]
	used    atomic.Int64 // requests under way, without calls of gRPC
}

// RoundTrip implements [http.RoundTripper].
func (x *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	return x.current.Load().throttles.RoundTrip(r)
}

// replace puts u in the place of what there was. Those who wait for their turn go on
// to wait.
func (x *cluster) replace(u *upstream) error {
	old := x.current.Load()
	if old != nil && old.queue != nil && u.queue != nil {
		old.queue.Update(u.queue.Limits())
		u.queue = old.queue
	}
	if old == nil {
		x.current.Store(u)
		return nil
	}
	if old.checker != nil {
		old.checker.stop() // so that nothing changes while it is taken over
	}
	err := u.endpoints.inherit(old.endpoints, u.config.Health != nil && old.config.Health != nil)
	x.current.Store(u)
	old.close()
	return err
}

// enter counts a request. If there is no room for it, one that waits for its client is evicted.
func (x *cluster) enter(r *exchange) {
	if x.used.Add(1) > int64(x.most(false)) && r.client != nil {
		r.client.owner.evictFrom(x)
	}
}

// plenty is how many requests, or calls of gRPC, may be under way while there is still room
// for others.
func (x *cluster) plenty(calls bool) int {
	most := x.most(calls)
	return most - most/scarceShare
}

// most is how many requests, or calls of gRPC, may be under way. Many calls share a connection.
func (x *cluster) most(calls bool) int {
	u := x.current.Load()
	most := math.MaxInt
	lower := func(n int) {
		if n > 0 {
			most = min(most, n)
		}
	}
	if !calls && u.config.Protocol != "http2" {
		lower(u.config.MaxConnections * len(u.config.Endpoints))
	}
	lower(cmp.Or(u.config.Inflight.MaxRequests, inflight.DefaultMaxRequests))
	if u.queue != nil {
		lower(u.queue.Limits().Places)
	}
	return most
}

func (x *cluster) close() { x.current.Load().close() }

func (x *cluster) stats(now time.Time) ClusterStats {
	u := x.current.Load()
	s := ClusterStats{Egress: u.policies.Stats()[x.name], Endpoints: u.endpoints.stats(now), Panics: u.endpoints.set.Panics(now)}
	s.Egress.Throttle = u.throttles.throttle.Stats(now)
	if u.limits != nil {
		s.Egress.Inflight = u.limits.Limiter().Stats() // which follows before the first request, too
	}
	s.Retry = u.retries.Stats()
	if b := u.retries.Budget; b != nil {
		s.Budget = b.Stats()
	}
	if u.queue != nil {
		s.Queue = u.queue.Stats()
	}
	return s
}

// An upstream is a cluster as one configuration has it.
type upstream struct {
	config    *config.Cluster
	mode      config.Mode
	tls       keys.Secrets
	endpoints *endpoints
	policies  *spillhttp.Transport
	transport *keeper
	throttles *throttles
	queue     *turns.Queue // nil: nobody waits for a turn
	checker   *checker     // nil: there are no checks
	reports   *outOfBand   // nil: endpoints are not asked for load reports
	retries   *config.Retries
	meter     *meter            // nil: no limit follows what it counts
	limiter   *inflight.Limiter // nil likewise
	plane     ControlPlane      // nil: the configuration has all limits
	limits    Limits            // nil likewise
}

func newUpstream(c *config.Config, x *config.Cluster, tls keys.Secrets, o spillway.Observer, plane ControlPlane) (*upstream, error) {
	policies, err := c.Egress(x)
	if err != nil {
		return nil, err
	}
	policies.Observer = o
	u := &upstream{config: x, mode: c.Mode, tls: tls, plane: plane}
	if u.endpoints, err = newEndpoints(x, tls.Config); err != nil {
		return nil, err
	}
	if u.throttles, err = newThrottles(x, policies.Throttle, policies.ThrottleMode, o); err != nil {
		return nil, err
	}
	policies.ThrottleMode = spillway.ModeOff // it is asked once for each request, not for each attempt
	u.retries, _ = policies.Retry.(*config.Retries)
	base, err := u.controlled(&policies)
	if err == nil {
		base, err = u.measured(&policies, base)
	}
	if err == nil {
		u.policies, err = spillhttp.NewTransport(spillhttp.TransportConfig{
			Base: base, Egress: policies, MaxHosts: 1, Key: func(*http.Request) string { return x.Name },
		})
	}
	if err != nil {
		u.release()
		return nil, err
	}
	u.transport = &keeper{next: u.policies}
	u.throttles.next = u.transport
	if c.Retries(x) {
		u.transport.most = x.Retry.MaxBodyBytes
		u.transport.trails = len(u.endpoints.all) > 1
	}
	if x.Health != nil {
		u.checker = newChecker(x, tls.Config)
	}
	if l := x.Balance.LoadReports; l != nil && l.OutOfBandPeriod > 0 {
		u.reports = &outOfBand{endpoints: u.endpoints, every: l.OutOfBandPeriod, cluster: x.Name}
	}
	if b := x.Batch; b != nil {
		u.queue = turns.New(turns.Limits{Places: u.endpoints.places(), Waiting: b.Queue, MaxWait: b.MaxWait})
	}
	return u, nil
}

// controlled returns the endpoints, and gives the policies the limits of the control
// plane, if there is one.
func (u *upstream) controlled(policies *egress.Config) (base http.RoundTripper, err error) {
	if u.plane == nil {
		return u.endpoints, nil
	}
	if u.limits, err = u.plane.Limits(*u.config.XDS); err != nil {
		u.limits = nil
		return nil, err
	}
	*policies = u.limits.Egress(*policies)
	return u.limits.RoundTripper(u.endpoints), nil
}

// measured returns base, with a meter in front of it if a limit is tuned, and gives the
// policies a limit in flight that can be moved.
func (u *upstream) measured(policies *egress.Config, base http.RoundTripper) (http.RoundTripper, error) {
	if _, tuned := u.config.Tuning(); !tuned {
		return base, nil
	}
	if policies.Inflight == nil {
		var err error
		if policies.Inflight, err = inflight.New(inflight.Config{MaxRequests: policies.MaxRequests}); err != nil {
			return nil, err
		}
		policies.MaxRequests = 0
	}
	u.limiter = policies.Inflight
	u.meter = &meter{next: base}
	return u.meter, nil
}

// check checks the endpoints, and asks them for load reports, until ctx ends or u is
// closed.
func (u *upstream) check(ctx context.Context, logger *slog.Logger) {
	if u.checker != nil {
		u.checker.start(ctx, logger, u.endpoints)
	}
	if u.reports != nil {
		u.reports.start(ctx, logger)
	}
}

// release gives up what a control plane sets.
func (u *upstream) release() {
	if u.limits != nil {
		u.limits.Close()
	}
}

// close ends the checks, and closes connections as they fall idle.
func (u *upstream) close() {
	u.release()
	if u.checker != nil {
		u.checker.stop()
	}
	if u.reports != nil {
		u.reports.stop()
	}
	u.endpoints.close()
}
