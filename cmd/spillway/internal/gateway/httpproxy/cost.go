package httpproxy

import (
	"net/http"
	"strconv"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// costHeader is the header in which an endpoint reports what a request has cost. It never leaves
// the proxy.
const costHeader = "X-Request-Cost"

// maxCost is the most that a report of an endpoint may say, as in the configuration.
const maxCost = 1e6

// charge charges what the route of a request costs in place of the cost of the quota.
func (g *gate) charge(r *http.Request) {
	a := accountingOf(r.Context())
	if a == nil {
		return
	}
	a.cost = admissionCost(g.cluster.Current().Config().Quota)
	route := g.settings.Load().table.Match(r)
	if route == nil || route.Config.Cost == 0 {
		return
	}
	cost := max(route.Config.Cost, 0)
	spillhttp.Charge(r.Context(), cost-a.cost)
	a.cost = cost
}

// admissionCost returns what the quota charges when it admits a request.
func admissionCost(q *config.Quota) float64 {
	switch {
	case q == nil || q.Cost == 0:
		return 1
	default:
		return max(q.Cost, 0)
	}
}

// received takes the report of the cost out of an answer, and charges it where the cluster may
// report costs. It returns an error for an answer that must not be passed on.
func (g *gate) received(resp *http.Response) error {
	g.settings.Load().conceal(resp)
	values := resp.Header[costHeader]
	delete(resp.Header, costHeader)
	a := accountingOf(resp.Request.Context())
	if len(values) == 1 && a != nil && g.cluster.Current().Config().ReportsCost {
		if cost, err := strconv.ParseFloat(values[0], 64); err == nil && cost >= 0 && cost <= maxCost {
			spillhttp.Charge(resp.Request.Context(), cost-a.cost)
			a.cost = cost
		}
	}
	return switches(resp)
}

// learned is what a cluster learns of the cost of requests. The gates of the cluster share it, as its
// endpoints work for all of them.
type learned struct {
	config    config.LearnCosts
	estimator *cost.Estimator // nil: nothing is learned
}

// learn makes what learns the costs of a cluster, unless it exists with the same configuration.
func (p *Proxy) learn(n *next, x *config.Cluster) error {
	if x.LearnCosts == nil {
		return nil
	}
	if kept := p.costs[x.Name]; kept.estimator != nil && kept.config == *x.LearnCosts {
		n.costs[x.Name] = kept
		return nil
	}
	estimator, err := x.LearnCosts.Estimator(n.clusters[x.Name].Processor)
	if err != nil {
		return err
	}
	n.costs[x.Name] = learned{*x.LearnCosts, estimator}
	return nil
}

// to has a gate charge what is learned.
func (l learned) to(c *ingress.Config) {
	c.Costs = l.estimator
	if l.config.By == "route" {
		c.CostKey = func(call spillway.Call) string { return call.Key }
	}
}
