package importer

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// rateLimits carries the local rate limit of the listener to all clusters, or says why it cannot.
func (e *envoyImport) rateLimits() {
	for _, f := range e.limits {
		if problem := e.rateLimit(f); problem != "" {
			f.LeaveWhole(Limit, problem, "clusters[].rate_limit")
		}
		f.LeaveWhole(Detail, "rate_limit has no such setting", "")
	}
}

func (e *envoyImport) rateLimit(f document.Part) (problem string) {
	if len(e.found.listeners) > 1 || len(e.limits) > 1 {
		return "a rate limit is of a cluster here, and alike for all listeners"
	}
	c := f.Get("typed_config")
	mode, problem := modeOfShares(shareOf(c.Get("filter_enabled")), shareOf(c.Get("filter_enforced")))
	limit, ok := bucketOf(c.Get("token_bucket"))
	switch {
	case problem != "":
		return problem
	case !ok:
		return "its token_bucket cannot be read"
	}
	limit.Mode = mode
	if err := e.tryRateLimit(limit); err != nil {
		return "the proxy does not accept it: " + err.Error()
	}
	for _, x := range e.clusters {
		x.RateLimit = limit
	}
	carry("clusters[].rate_limit", f.Get("name"), c.Get("@type"))
	carry("clusters[].rate_limit.mode", c.At("filter_enabled", "default_value"), c.At("filter_enforced", "default_value"))
	reason := ""
	if len(e.clusters) > 1 {
		reason = "it is for each cluster, and not for all together"
	}
	c.Get("token_bucket").Change("clusters[].rate_limit", reason)
	return ""
}

func (e *envoyImport) tryRateLimit(limit config.RateLimit) error {
	x := e.cluster("any")
	x.RateLimit = limit
	_, trial := e.trial(x)
	return trial.Check()
}

// bucketOf returns the rate limit that a token bucket is.
func bucketOf(c document.Part) (config.RateLimit, bool) {
	most, ok := c.Get("max_tokens").Count()
	every, valid := c.Get("fill_interval").Duration()
	tokens, given := 1, true
	if each := c.Get("tokens_per_fill"); each.There() {
		tokens, given = each.Count()
	}
	if !ok || !valid || !given || most == 0 || tokens == 0 || every <= 0 {
		return config.RateLimit{}, false
	}
	rate := float64(tokens) / every.Seconds()
	return config.RateLimit{Rate: rate, BurstSeconds: float64(most) / rate}, true
}

// modeOfShares returns the mode of a filter that looks at a share of the requests, and enforces what it finds on a share
// of those.
func modeOfShares(enabled, enforced float64) (mode config.Mode, problem string) {
	switch {
	case enabled == 0:
		return "", "it is off in Envoy: filter_enabled is 0, or not given"
	case enabled != 1 || enforced != 0 && enforced != 1:
		return "", "it is for a share of the requests"
	case enforced == 0:
		return "observe", ""
	}
	return "enforce", ""
}

// denominators are what a FractionalPercent is of.
var denominators = map[string]float64{"": 100, "HUNDRED": 100, "TEN_THOUSAND": 1e4, "MILLION": 1e6}

// shareOf returns the default of a RuntimeFractionalPercent, of 1; without one it is 0 in Envoy. What cannot be read is a
// share that is neither 0 nor 1.
func shareOf(c document.Part) float64 {
	value := c.Get("default_value")
	n, ok := value.Get("numerator").Count()
	of, known := denominators[value.Get("denominator").Text()]
	switch {
	case !value.Get("numerator").There():
		return 0
	case !ok || !known:
		return -1
	}
	return min(float64(n)/of, 1)
}
