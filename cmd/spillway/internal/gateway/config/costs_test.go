package config

import (
	"strings"
	"testing"
)

// learning is a file with a cluster that learns costs.
const learning = `listeners: [{address: "127.0.0.1:0"}]
clusters:
- name: web
  endpoints: ["127.0.0.1:1"]
  balance: {load_reports: {oob_reporting_period: 1s}}
  quota: {customers: {mail: {rate: 1000}}}
  learn_costs: {by: route, unit: 10ms, max_keys: 64, max_error: 0.2}
routes:
- path: /
`

func TestLearnCosts(t *testing.T) {
	c := parse(t, learning)
	if l := c.Clusters[0].LearnCosts; l == nil || l.By != "route" || l.MaxKeys != 64 {
		t.Errorf("%+v", l)
	}
	const at = "clusters[0].learn_costs"
	for name, test := range map[string]struct{ from, to, want string }{
		"neither":        {"by: route", "by: path", at + `.by is "path", must be customer or route`},
		"small unit":     {"unit: 10ms", "unit: 1ns", at + ".unit is 1ns"},
		"many keys":      {"max_keys: 64", "max_keys: 1000", at + ".max_keys is 1000"},
		"large error":    {"max_error: 0.2", "max_error: 2", at + ".max_error is 2"},
		"no quota":       {"  quota: {customers: {mail: {rate: 1000}}}\n", "", at + " is given, but the cluster has no quota"},
		"no reports":     {"  balance: {load_reports: {oob_reporting_period: 1s}}\n", "", "needs balance.load_reports"},
		"rare reports":   {"oob_reporting_period: 1s", "oob_reporting_period: 6s", "must be at most 5s to learn costs"},
		"reported costs": {"- name: web", "- name: web\n  reports_cost: true", "leave one of them out"},
		"cost of route":  {"- path: /", "- path: /\n  cost: 5", "routes[0].cost is 5: leave one of them out"},
	} {
		_, err := Parse("file.yaml", []byte(strings.Replace(learning, test.from, test.to, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}
