package httpproxy

import (
	"net/http"
	"strconv"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/headers"
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
	a.cost = admissionCost(g.cluster.Current().Config().Quota)
	if of := a.to.Config.Cost; of != 0 {
		cost := max(of, 0)
		spillhttp.Charge(r.Context(), cost-a.cost)
		a.cost = cost
	}
}

// admissionCost returns what the quota charges when it admits a request.
func admissionCost(q *config.Quota) float64 {
	if q == nil || q.Cost == 0 {
		return 1
	}
	return max(q.Cost, 0)
}

// received takes the report of the cost out of an answer, and charges it where the cluster may
// report costs. It returns an error for an answer that must not be passed on.
func (g *gate) received(resp *http.Response) error {
	g.settings.Load().conceal(resp)
	values := resp.Header[costHeader]
	delete(resp.Header, costHeader)
	a := accountingOf(resp.Request.Context())
	a.upstreamAnswered()
	resp.Header[headers.RequestID] = a.id
	if len(values) == 1 && g.cluster.Current().Config().ReportsCost {
		if cost, err := strconv.ParseFloat(values[0], 64); err == nil && cost >= 0 && cost <= maxCost {
			spillhttp.Charge(resp.Request.Context(), cost-a.cost)
			a.cost = cost
		}
	}
	return switches(resp)
}
