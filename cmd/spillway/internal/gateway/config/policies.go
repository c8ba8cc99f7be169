package config

import (
	"cmp"
	"errors"
	"net/netip"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/tokens"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/throttle"
)

func (c *Config) modeOf(m Mode) spillway.Mode { return m.Or(c.Mode.Or(spillway.ModeObserve)) }

// Criticality returns the class, and whether there is one.
func (c Class) Criticality() (spillway.Criticality, bool) {
	class, err := spillway.ParseCriticality(string(c))
	return class, err == nil
}

// Ingress returns what of a cluster concerns its server's side, for requests that
// come by a listener.
func (c *Config) Ingress(l *Listener, x *Cluster) ingress.Config {
	all := ingress.Config{
		RateLimit:     policyconf.Fill[ratelimit.Config](x.RateLimit),
		RateLimitMode: c.modeOf(x.RateLimit.Mode),
		ProxyOnly:     true,
		Attempts:      policyconf.Fill[attempts.Config](x.Attempts),
		Trust:         l.trust(),
		RetryAfter:    x.RetryAfter,
		LimitKey:      c.limitKey(x.Name),
	}
	c.shed(&all, &x.Shed)
	c.quota(&all, x.Quota)
	if x.Batch != nil && x.Shed.Mode == "" {
		all.ShedMode = spillway.ModeOff // what waits for its turn is not the cluster's load
	}
	return all
}

func (c *Config) shed(all *ingress.Config, x *Shed) {
	all.ShedMode = c.modeOf(x.Mode)
	all.Shed = policyconf.Fill[shed.Config](*x)
	all.Concurrency = policyconf.Fill[concurrency.Config](*x)
	all.Load = policyconf.Fill[load.Config](*x)
}

func (c *Config) quota(all *ingress.Config, q *Quota) {
	if q == nil {
		return
	}
	all.QuotaMode = c.modeOf(q.Mode)
	all.Quota = policyconf.Fill[quota.Config](*q)
	if local, err := quota.NewLocal(policyconf.Fill[quota.LocalConfig](*q)); err == nil { // as Check has found it good
		all.Quota.Allocator = local
	}
}

// reasonsNamed are the values of Listener.Reasons.
var reasonsNamed = map[string]ingress.Reasons{"none": ingress.ReasonsNone, "coarse": ingress.ReasonsCoarse, "full": ingress.ReasonsFull}

// Discloses returns how much of the reason clients of l learn when they are rejected.
func (l *Listener) Discloses() ingress.Reasons {
	t := l.trust()
	return t.Discloses()
}

func (l *Listener) trust() ingress.Trust {
	t := ingress.Trust{MaxTimeout: l.MaxTimeout, Reasons: reasonsNamed[l.Reasons]}
	if l.Boundary == "internal" {
		t.Boundary = ingress.Internal
	}
	t.DefaultMax, _ = l.Others.Criticality() // Check has seen that it is one, or empty
	t.MaxByIdentity = make(map[string]spillway.Criticality, len(l.Callers))
	for name, class := range l.Callers {
		t.MaxByIdentity[name], _ = class.Criticality() // as above
	}
	return t
}

// TrustsRequestID reports whether the id that a client gives its request is kept.
func (l *Listener) TrustsRequestID() bool { return l.Boundary == "internal" || l.PreserveRequestID }

// Connections returns what of a listener concerns connections.
func (l *Listener) Connections() connlimit.Config {
	all := connlimit.Config{MaxOpen: l.MaxConnections}
	if l.ConnectionRate.Mode != "off" {
		all.Rate = policyconf.Fill[ratelimit.Config](l.ConnectionRate)
	}
	return all
}

// Networks returns the networks of the peers, nil if all may connect.
func (l *Listener) Networks() []netip.Prefix { return policyconf.Networks(l.Peers).Prefixes() }

// Egress returns the client-side policies of a cluster, or an error of type [*Error].
func (c *Config) Egress(x *Cluster) (egress.Config, error) {
	retries, err := c.retries(x)
	if err != nil {
		return egress.Config{}, policyError[retry.BudgetedConfig]("retry", x.Retry, err)
	}
	return egress.Config{
		Throttle:     policyconf.Fill[throttle.Config](x.Throttle),
		ThrottleMode: c.modeOf(x.Throttle.Mode),
		MaxInFlight:  x.Inflight.MaxInFlight,
		InFlightMode: c.modeOf(x.Inflight.Mode),
		Retry:        retries,
	}, nil
}

// Retries is the retry strategy of a cluster, with the budget that pays for retries.
type Retries struct {
	*retry.Budgeted

	Budget *budget.Bucket // nil: nothing is sent again
}

func (c *Config) retries(x *Cluster) (*Retries, error) {
	b, r := policyconf.Fill[retry.BudgetedConfig](x.Retry), new(Retries)
	b.Backoff.Base = max(0, b.Backoff.Base)
	if !c.Retries(x) {
		b.MaxAttempts = 1
	}
	b.Ratio = cmp.Or(b.Ratio, tokens.DefaultRatio)
	var err error
	if r.Budgeted, err = retry.NewBudgeted(b); err != nil || b.MaxAttempts == 1 || b.Ratio < 0 && x.Retry.Budget == nil {
		return r, err
	}
	if r.Budget, err = budget.New(x.Retry.bucket(b.Ratio)); err != nil { // of a ratio, as Check has found a budget good
		return nil, &spillway.FieldError{Path: "Ratio", Value: b.Ratio, Allowed: "at most 1e6"}
	}
	b.Budget = r.Budget
	r.Budgeted, err = retry.NewBudgeted(b)
	return r, err
}

// bucket returns the budget that pays for retries.
func (r *Retry) bucket(ratio float64) budget.Config {
	if r.Budget != nil {
		return policyconf.Fill[budget.Config](*r.Budget)
	}
	return budget.Config{Capacity: tokens.EarningCalls * ratio, Empty: true, Credit: tokens.CreditCalls * ratio}
}

// Retries reports whether requests to a cluster are sent again.
func (c *Config) Retries(x *Cluster) bool { return c.modeOf(x.Retry.Mode) == spillway.ModeEnforce }

// policyError makes the error of a field of the error that a policy has with its Config T,
// which was made of a section at a place in the file: Backoff.Max becomes retry.max.
func policyError[T any](at string, section any, err error) *Error {
	e, ok := errors.AsType[*spillway.FieldError](err)
	if !ok {
		return failf(at, "is wrong: %v", err)
	}
	return failf(strings.TrimPrefix(at+".", ".")+policyconf.Path[T](section, e.Path), "%s", e.Problem())
}

// Defaulted returns l with its defaults.
func (l Listener) Defaulted() Listener {
	l.Name = cmp.Or(l.Name, l.Address)
	return *defaulted(&l)
}

// Defaulted returns x with its defaults, but without the defaults of the policies.
func (x Cluster) Defaulted() Cluster {
	d := defaulted(&x)
	if h := d.Health; h != nil && h.Type == "http" {
		h.Path = cmp.Or(h.Path, "/healthz")
	}
	if d.XDS != nil {
		d.XDS.Cluster = cmp.Or(d.XDS.Cluster, d.Name)
	}
	return *d
}

// Defaulted returns c with its defaults.
func (c *Config) Defaulted() *Config {
	d := defaulted(c)
	for i := range d.Listeners {
		d.Listeners[i] = d.Listeners[i].Defaulted()
	}
	for i := range d.Clusters {
		d.Clusters[i] = d.Clusters[i].Defaulted()
	}
	for i := range d.Mongo {
		d.Mongo[i] = d.Mongo[i].Defaulted()
	}
	if len(d.Routes) == 0 {
		d.Routes = []Route{{}}
	}
	batch := make(map[string]bool)
	for i := range d.Clusters {
		if x := &d.Clusters[i]; x.Batch != nil {
			batch[x.Name] = true
		}
	}
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Cluster == "" && len(d.Clusters) == 1 {
			r.Cluster = d.Clusters[0].Name
		}
		if r.Criticality == "" && batch[r.Cluster] {
			r.Criticality = Class(spillway.SheddablePlus.String()) // the source's default of batch jobs
		}
	}
	return d
}
