package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillhttp"
)

// A Version is a cluster with one configuration.
type Version struct {
	config    *config.Cluster
	mode      config.Mode
	secrets   string // of what endpoints are spoken to with
	endpoints *endpoints
	policies  *spillhttp.Transport
	transport *keeper
	throttles *throttles
	queue     *turns.Queue // nil: nobody waits for a turn
	checker   *checker     // nil: there are no checks
	reports   *outOfBand   // nil: endpoints are not asked for load reports
	retries   *config.Retries
	meter     *Meter            // nil: no limit follows what it counts
	limiter   *inflight.Limiter // nil likewise
	plane     ControlPlane      // nil: the configuration has all limits
	limits    Limits            // nil likewise
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
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// plane returns the control plane that sets limits of the cluster, or nil.
func (o *Options) plane() ControlPlane {
	if o.Cluster.XDS == nil {
		return nil
	}
	return o.Plane
}

// Make makes a version. A caller that does not pass it to [Cluster.Replace] must close it.
func Make(o Options) (*Version, error) {
	c, x := o.Config, o.Cluster
	policies, err := c.Egress(x)
	if err != nil {
		return nil, err
	}
	policies.Observer = o.Observer
	u := &Version{config: x, mode: c.Mode, secrets: o.Secrets.Text, plane: o.plane(), endpoints: newEndpoints(x, o.Secrets.Config)}
	if o.Dial != nil {
		u.endpoints.dial(o.Dial)
	}
	if u.throttles, err = newThrottles(x, policies.Throttle, policies.ThrottleMode, o.Observer); err != nil {
		return nil, err
	}
	policies.ThrottleMode = spillway.ModeOff        // it is asked once for each request, not for each attempt
	u.retries, _ = policies.Retry.(*config.Retries) // nil without retries
	if u.policies, err = u.apply(policies); err != nil {
		u.release()
		return nil, err
	}
	u.transport = &keeper{next: u.policies}
	u.throttles.next = u.transport
	if c.Retries(x) {
		u.transport.most = x.Retry.MaxBodyBytes
		u.transport.trails = len(u.endpoints.all) > 1
	}
	u.equip(o.Secrets.Config)
	return u, nil
}

// equip creates the optional parts of a version.
func (u *Version) equip(secured *tls.Config) {
	x := u.config
	if x.Health != nil {
		u.checker = newChecker(x, secured)
	}
	if l := x.Balance.LoadReports; l != nil && l.OutOfBandPeriod > 0 {
		u.reports = &outOfBand{endpoints: u.endpoints, every: l.OutOfBandPeriod, cluster: x.Name}
	}
	if b := x.Batch; b != nil {
		u.queue = turns.New(turns.Limits{Places: u.endpoints.places(), Waiting: b.Queue, MaxWait: b.MaxWait})
	}
}

// apply returns the policies in front of the endpoints.
func (u *Version) apply(policies egress.Config) (*spillhttp.Transport, error) {
	base, err := u.controlled(&policies)
	if err == nil {
		base, err = u.measured(&policies, base)
	}
	if err != nil {
		return nil, err
	}
	return spillhttp.NewTransport(spillhttp.TransportConfig{
		Base: base, Egress: policies, MaxHosts: 1, Key: func(*http.Request) string { return u.config.Name },
	})
}

// controlled returns the endpoints, and gives the policies the limits of the control
// plane, if there is one.
func (u *Version) controlled(policies *egress.Config) (base http.RoundTripper, err error) {
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
// policies an adjustable in-flight limit.
func (u *Version) measured(policies *egress.Config, base http.RoundTripper) (http.RoundTripper, error) {
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
	u.meter = &Meter{next: base}
	return u.meter, nil
}

// Same reports whether a version with o would be equal.
func (u *Version) Same(o Options) bool {
	return u.secrets == o.Secrets.Text && u.mode == o.Config.Mode && u.plane == o.plane() && reflect.DeepEqual(u.config, o.Cluster)
}

// Config returns the configuration of the cluster.
func (u *Version) Config() *config.Cluster { return u.config }

// Queue returns the queue of a batch cluster, or nil.
func (u *Version) Queue() *turns.Queue { return u.queue }

// Limiter returns the in-flight limiter, if a limit of the cluster is tuned.
func (u *Version) Limiter() *inflight.Limiter { return u.limiter }

// Meter returns the meter of the answers, if a limit of the cluster is tuned.
func (u *Version) Meter() *Meter { return u.meter }

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
func (u *Version) Places(calls bool) int {
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

// check checks the endpoints, and asks them for load reports, until ctx ends or u is
// closed.
func (u *Version) check(ctx context.Context, logger *slog.Logger) {
	if u.checker != nil {
		u.checker.start(ctx, logger, u.endpoints)
	}
	if u.reports != nil {
		u.reports.start(ctx, logger)
	}
}

// release releases the limits of the control plane.
func (u *Version) release() {
	if u.limits != nil {
		u.limits.Close()
	}
}

// Close stops the checks, and closes connections when they become idle.
func (u *Version) Close() {
	u.release()
	if u.checker != nil {
		u.checker.stop()
	}
	if u.reports != nil {
		u.reports.end()
	}
	u.endpoints.close()
}
