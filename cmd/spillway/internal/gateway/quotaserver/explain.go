package quotaserver

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/textpage"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// An Explanation says what a customer may use.
type Explanation struct {
	Domain    string  `json:"domain"`
	Customer  string  `json:"customer"`
	Listed    bool    `json:"listed"`
	LimitedBy string  `json:"limited_by"` // the field of the file; empty: nothing limits it
	Limit     float64 `json:"limit"`      // cost per second in all Envoys together; 0: no limit
	Tasks     int     `json:"tasks"`
	Share     float64 `json:"share_without_levels"` // cost per second of an Envoy whose server has no levels
	// AtOnce has how many requests of each class are admitted at once, in all Envoys together, after a pause.
	AtOnce map[string]int `json:"at_once"`
	Shared string         `json:"shared"` // with which servers
	Filter string         `json:"filter"` // of the Envoys
}

// defaultTasks is what zero tasks means, as in package fleet.
const defaultTasks = 10

// mostAtOnce bounds the requests that are tried.
const mostAtOnce = 1_000_000

// Explain returns what a customer may use by a checked configuration. The code that serves Envoys decides.
func Explain(c *config.QuotaServer, customer string) (*Explanation, error) {
	d, all := c.Defaulted(), c.Fleet()
	f, err := fleet.New(all)
	if err != nil {
		return nil, err
	}
	_, listed := c.Customers[customer]
	now := time.Unix(0, 0)
	grant := f.Lease(now, quota.Demand{Customer: customer})
	e := &Explanation{
		Domain: c.Domain, Customer: customer, Listed: listed, Limit: known(grant.Limit), Share: known(grant.Rate),
		Tasks: cmp.Or(c.Tasks, defaultTasks), AtOnce: make(map[string]int), Shared: "no other server",
	}
	if c.Redis != nil {
		e.Shared = "servers, proxies and programs of the domain by " + strings.Join(c.Redis.Addresses, ", ")
	}
	e.LimitedBy = limitedBy(c, customer, grant)
	switch e.LimitedBy { // which many customers share
	case quota.UnlistedTotal:
		e.Limit = c.UnlistedTotal.Rate
	case quota.Capacity:
		e.Limit = c.Capacity
	}
	all.Tasks = 1 // all Envoys together
	for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
		n, err := atOnce(all, spillway.Call{Customer: customer, Criticality: class})
		if err != nil {
			return nil, err
		}
		e.AtOnce[class.String()] = n
	}
	e.Filter = filter(d, e)
	return e, nil
}

// known returns a rate, and 0 for no limit.
func known(rate float64) float64 {
	if math.IsInf(rate, 1) {
		return 0
	}
	return rate
}

// limitedBy returns the field that limits a customer.
func limitedBy(c *config.QuotaServer, customer string, g quota.Grant) string {
	_, listed := c.Customers[customer]
	switch {
	case g.Setting != "":
		return g.Setting
	case listed && c.Customers[customer].Rate > 0:
		return "customers." + customer
	case !listed && c.DefaultLimit.Rate > 0:
		return "default_limit"
	case !listed && c.UnlistedTotal.Rate > 0:
		return quota.UnlistedTotal
	case c.Capacity > 0:
		return quota.Capacity
	}
	return ""
}

// atOnce returns how many calls are admitted at one time.
func atOnce(c fleet.Config, call spillway.Call) (n int, err error) {
	f, err := fleet.New(c)
	if err != nil {
		return 0, err
	}
	gate, err := quota.New(quota.Config{Allocator: f, BurstSeconds: c.BurstSeconds})
	if err != nil {
		return 0, err
	}
	now := time.Unix(0, 0)
	for admitted := true; admitted && n < mostAtOnce; {
		if _, err := gate.Admit(now, call); err != nil {
			admitted = false
		} else {
			n++
		}
	}
	return n, nil
}

// Write writes the explanation as text.
func (e *Explanation) Write(w io.Writer) error {
	text := textpage.Aligned(func(w io.Writer) {
		listed := "not listed"
		if e.Listed {
			listed = "listed"
		}
		textpage.Row(w, "customer", fmt.Sprintf("%q, %s", textpage.Tame(e.Customer), listed))
		if e.LimitedBy == "" {
			textpage.Row(w, "limit", "none")
			return
		}
		textpage.Row(w, "limit", fmt.Sprintf("%.6g per second in all Envoys together, by %s", e.Limit, e.LimitedBy))
		textpage.Row(w, "at once", fmt.Sprintf("SHEDDABLE %d, SHEDDABLE_PLUS %d, CRITICAL %d, CRITICAL_PLUS %d after a pause",
			e.AtOnce["SHEDDABLE"], e.AtOnce["SHEDDABLE_PLUS"], e.AtOnce["CRITICAL"], e.AtOnce["CRITICAL_PLUS"]))
		textpage.Row(w, "without levels", fmt.Sprintf("%.6g per second in each Envoy: the limit divided by tasks", e.Share))
		textpage.Row(w, "shared with", e.Shared)
	})
	_, err := fmt.Fprintf(w, "%s\nThe filter of the Envoys, with this server as the cluster quota:\n\n%s", text, e.Filter)
	return err
}

// ofHeader is the type of an input of Envoy.
const ofHeader = "type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput"

// filter returns the filter of the Envoys.
func filter(d *config.QuotaServer, e *Explanation) string {
	share := max(1, math.Round(e.Share))
	if e.Share == 0 {
		share = 1000
	}
	header := func(key, header string) string {
		return fmt.Sprintf(`%s: {custom_value: {name: header, typed_config: {"@type": %s, header_name: %s}}}`, key, ofHeader, header)
	}
	//nolint:dupword // Envoy has both
	return fmt.Sprintf(`- name: envoy.filters.http.rate_limit_quota
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig
    domain: %q
    rlqs_server: {envoy_grpc: {cluster_name: quota}}
    bucket_matchers:
      on_no_match:
        action:
          name: rate_limit_quota
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings
            reporting_interval: %gs
            bucket_id_builder:
              bucket_id_builder:
                %s
                %s
            no_assignment_behavior: {fallback_rate_limit: {blanket_rule: ALLOW_ALL}} # until the first answer
            expired_assignment_behavior: # without a server: the limit divided by tasks
              fallback_rate_limit: {token_bucket: {max_tokens: %g, tokens_per_fill: %[5]g, fill_interval: 1s}}
`, e.Domain, d.Interval.Seconds(), header(d.CustomerKey, "x-customer"), header(d.CriticalityKey, "x-request-criticality"), share)
}
