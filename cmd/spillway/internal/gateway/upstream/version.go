package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// A Version is a cluster with one configuration. Its exported fields are for reading.
type Version struct {
	Config  *config.Cluster
	Queue   *turns.Queue      // nil: requests wait for no turn
	Limiter *inflight.Limiter // of the cluster, or of the control plane
	Meter   *Meter            // of the answers; nil: no limit follows what it counts

	mode      config.Mode
	secrets   string // of what endpoints are spoken to with
	endpoints *endpoints
	policies  *spillhttp.Transport
	throttles *throttles
	watches   []watch            // of each endpoint, while the version is in use
	unwatch   context.CancelFunc // nil: they have not begun
	watching  sync.WaitGroup
	retries   *config.Retries
	costs     *cost.Estimator // nil: no costs are learned
	plane     ControlPlane    // nil: the configuration has all limits
	limits    Limits          // nil likewise
}

// Options are the options of a [Version].
type Options struct {
	Config   *config.Config  // with its defaults
	Cluster  *config.Cluster // of it
	Secrets  keys.Secrets    // by which endpoints are spoken to
	Observer spillway.Observer
	// Plane sets limits of clusters with an xds part. It is nil without a control plane.
	Plane ControlPlane
	// Dial connects to endpoints, except for checks. Nil connects over the network.
	Dial DialFunc
}

// Make returns a version for Replace, or the one in use if that would be equal. A caller that does not
// pass a new one to [Cluster.Replace] must close it.
func (x *Cluster) Make(o Options) (*Version, error) {
	if o.Cluster.XDS == nil {
		o.Plane = nil
	}
	old := x.Current()
	if old != nil && old.same(o) {
		return old, nil
	}
	u, err := x.makeVersion(o)
	if err != nil {
		return nil, err
	}
	if err := x.learn(u, old); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// learn has a version learn the costs of requests, if it is to. What the former version knows is kept
// if it has learned in the same way.
func (x *Cluster) learn(u, old *Version) (err error) {
	c := u.Config.LearnCosts
	switch {
	case c == nil:
		return nil
	case old != nil && old.costs != nil && *old.Config.LearnCosts == *c:
		u.costs = old.costs
		return nil
	}
	u.costs, err = c.Estimator(x.Processor)
	return err
}

// Charge has a gate charge the costs that the cluster learns. All its gates share them, as its
// endpoints work for all of them.
func (u *Version) Charge(c *ingress.Config) {
	c.Costs = u.costs
	if u.costs != nil && u.Config.LearnCosts.By == "route" {
		c.CostKey = func(call spillway.Call) string { return call.Key }
	}
}

func (x *Cluster) makeVersion(o Options) (*Version, error) {
	c, of := o.Config, o.Cluster
	policies, err := c.Egress(of)
	if err != nil {
		return nil, err
	}
	policies.Observer = o.Observer
	u := &Version{Config: of, mode: c.Mode, secrets: o.Secrets.Text, plane: o.Plane, endpoints: newEndpoints(of, o.Secrets.Config)}
	if o.Dial != nil {
		u.endpoints.dial(o.Dial)
	}
	u.retries, _ = policies.Retry.(*config.Retries) // nil without retries
	each := policies
	each.ThrottleMode = spillway.ModeOff // it is asked once for each request, not for each attempt
	if u.policies, err = u.apply(each, x.limiter); err == nil {
		k := &keeper{next: u.policies}
		if c.Retries(of) {
			k.most, k.trails = of.Retry.MaxBodyBytes, len(u.endpoints.all) > 1
		}
		u.throttles, err = newThrottles(of, policies, k)
	}
	if err != nil {
		u.Close()
		return nil, err
	}
	u.equip(o.Secrets.Config)
	return u, nil
}

func (u *Version) equip(secured *tls.Config) {
	x := u.Config
	if x.Health != nil {
		u.watches = append(u.watches, newChecker(u.endpoints, x, secured).follow)
	}
	if l := x.Balance.LoadReports; l != nil && l.OutOfBandPeriod > 0 {
		u.watches = append(u.watches, (&outOfBand{u.endpoints, l.OutOfBandPeriod}).follow)
	}
	if b := x.Batch; b != nil {
		u.Queue = turns.New(turns.Limits{Places: u.endpoints.places(), Waiting: b.Queue, MaxWait: b.MaxWait})
	}
}

// apply returns the policies in front of the endpoints. The control plane, if there is one, sets their
// limits; else that on requests in flight is the limiter. If a limit is tuned, there is a meter.
func (u *Version) apply(policies egress.Config, limiter *inflight.Limiter) (*spillhttp.Transport, error) {
	base := http.RoundTripper(u.endpoints)
	if u.plane != nil {
		limits, err := u.plane.Limits(*u.Config.XDS)
		if err != nil {
			return nil, err
		}
		u.limits = limits
		policies, base = limits.Egress(policies), limits.RoundTripper(base)
	}
	if policies.InFlight == nil {
		policies.InFlight, policies.MaxInFlight = limiter, 0
	}
	if _, tuned := u.Config.Tuning(); tuned {
		u.Meter = &Meter{next: base}
		base = u.Meter
	}
	u.Limiter = policies.InFlight
	return spillhttp.NewTransport(spillhttp.TransportConfig{
		Base: base, Egress: policies, MaxBackends: 1, Backend: func(*http.Request) string { return u.Config.Name },
	})
}

func (u *Version) same(o Options) bool {
	return u.secrets == o.Secrets.Text && u.mode == o.Config.Mode && u.plane == o.Plane && reflect.DeepEqual(u.Config, o.Cluster)
}

// Address returns the scheme and the address of any endpoint, for requests whose endpoint is
// chosen later.
func (u *Version) Address() (scheme, host string) {
	return u.endpoints.scheme, u.endpoints.all[0].address
}

// Wait returns the time until the first retry hint of the endpoints for a class expires; 0 if
// an endpoint has sent no hint.
func (u *Version) Wait(now time.Time, c spillway.Criticality) time.Duration {
	return u.endpoints.set.Wait(now, c)
}

// Places returns the maximum numbers of requests and of gRPC calls in flight. Many calls share
// a connection.
func (u *Version) Places() (requests, calls int) {
	calls = cmp.Or(u.Config.Inflight.MaxInFlight, inflight.DefaultMaxInFlight)
	if calls < 0 {
		calls = math.MaxInt
	}
	if u.Queue != nil {
		calls = min(calls, u.Queue.Limits().Places)
	}
	if most := u.Config.MaxConnections * len(u.endpoints.all); most > 0 && u.Config.Protocol != "http2" {
		return min(most, calls), calls
	}
	return calls, calls
}

// A watch checks an endpoint, or receives its load reports, until ctx ends.
type watch func(ctx context.Context, logger *slog.Logger, x *endpoint)

// watch starts the watches. They end with ctx, or by stop.
func (u *Version) watch(ctx context.Context, logger *slog.Logger) {
	ctx, u.unwatch = context.WithCancel(ctx)
	for _, x := range u.endpoints.all {
		for _, follow := range u.watches {
			u.watching.Go(func() { follow(ctx, logger.With("cluster", u.Config.Name, "endpoint", x.address), x) })
		}
	}
}

// stop ends the watches, and waits for that.
func (u *Version) stop() {
	if u.unwatch != nil {
		u.unwatch()
	}
	u.watching.Wait()
}

// Close stops the checks, and closes connections when they become idle.
func (u *Version) Close() {
	if u.limits != nil {
		u.limits.Close()
	}
	u.stop()
	u.endpoints.close()
}

// A ControlPlane sets limits of clusters while the proxy runs.
type ControlPlane interface {
	// Limits returns the limits of a cluster. From then on they follow what the control
	// plane says.
	Limits(x config.ClusterXDS) (Limits, error)
	// Close closes the connection. It returns an error if reports could not be sent.
	Close() error
}

// Limits are the limits of a cluster that a control plane sets.
type Limits interface {
	// Egress returns c with the limits set, those of requests in flight as its Inflight.
	Egress(c egress.Config) egress.Config
	// RoundTripper wraps base and counts requests for the reports to the control plane.
	RoundTripper(base http.RoundTripper) http.RoundTripper
	// Close releases the limits. In-flight requests may go on.
	Close()
}
