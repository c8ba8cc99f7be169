package policyconf_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/throttle"
	"github.com/seed90641741/spillway/tune"
)

// configs are the Configs of the policies, and the structs in their lists and maps. [TestConfigs] compares them with the code.
var configs = []any{
	attempts.Config{}, budget.Config{}, budget.EndpointsConfig{}, concurrency.Config{}, cost.Config{}, fleet.Config{}, inflight.Config{}, load.Config{},
	quota.Config{}, quota.LocalConfig{}, quota.Limit{}, ratelimit.Config{}, retry.BudgetedConfig{}, retry.HedgeConfig{},
	retry.MongoDBConfig{}, retry.AWSStandardConfig{}, shed.Config{}, throttle.Config{}, tune.Config{},
}

// A surface is a kind of file that has settings of policies.
type surface struct {
	name     string
	sections map[string]any    // by their places in the file
	without  map[string]string // fields that no setting sets, and why
	base     func() map[string]any
	parse    func(text []byte) error
}

// inCode are the fields that no file sets, and why. Functions and interfaces are code, too.
var inCode = map[string]string{
	"inflight.Config.QueueDepth":              "no caller waits for the in-flight limit of a stack",
	"ratelimit.Config.Exempt.Applications":    "it is a parameter of listeners for MongoDB, which has its name from there",
	"ratelimit.Config.Exempt.Identities":      "connections are limited before a caller proves an identity",
	"ratelimit.Config.Exempt.Unauthenticated": "package spillmongo sets it; other protocols have no such requests",
	"load.Config.Signals":                     "functions",
	"load.Config.Reference":                   "package ingress sets it to the thresholds of the shedder",
	"shed.Config.Policy":                      "the name of the policy in events",
	"shed.Config.Advice":                      "likewise",
	"cost.Config.Interval":                    "it is how often load reports must come",
	"fleet.Config.Limits.":                    "they are those of the quota that is shared",
	"fleet.Config.BurstSeconds":               "likewise",
	"fleet.Config.MaxUnlisted":                "likewise: max_unlisted",
	"fleet.Config.Task":                       "tasks have random names",
	"fleet.Config.Above":                      "regions are for programs",
	"retry.HedgeConfig.":                      "neither the proxy nor the simulation sends hedges",
	"retry.AWSStandardConfig.Prices.":         "they follow from the revision",
}

var proxy = surface{
	name: "the configuration of the proxy",
	sections: map[string]any{
		"clusters.0.rate_limit": policyconf.RateLimit{}, "clusters.0.quota": policyconf.Quota{},
		"quotas.shared": policyconf.Engine{}, "clusters.0.quota.customers.acme": policyconf.Limit{}, "clusters.0.shed": policyconf.Shed{},
		"clusters.0.attempts": policyconf.Attempts{}, "clusters.0.throttle": policyconf.Throttle{},
		"clusters.0.inflight": policyconf.Inflight{}, "clusters.0.retry": config.Retry{},
		"clusters.0.retry.budget": policyconf.Budget{}, "clusters.0.tune": config.Tune{}, "mongo.0.retry": config.MongoRetry{},
		"clusters.0.learn_costs": config.LearnCosts{},
	},
	without: map[string]string{
		"retry.AWSStandardConfig.":            "it is what SDKs of AWS do, and not what a proxy does",
		"retry.MongoDBConfig.Retarget":        "the servers of a MongoDB listener are chosen by the driver",
		"budget.EndpointsConfig.MaxEndpoints": "a listener for MongoDB has fewer servers than the default",
		"budget.EndpointsConfig.Bucket.Empty": "the document has a bucket that starts full", "budget.EndpointsConfig.Bucket.Credit": "likewise",
		"budget.EndpointsConfig.Bucket.MinPerSecond": "the document has none",
		"tune.Config.Limit":                          "the limit that is tuned has its own setting",
		"tune.Config.Whole":                          "it follows from the limit",
		"tune.Config.Signals":                        "the settings latency and rejections make them",
		"tune.Config.Rule":                           "the setting rule is a name",
		"tune.Config.Enforce":                        "the setting mode is that of a gate",
	},
	base: func() map[string]any {
		return map[string]any{
			"mode":      "enforce",
			"listeners": []any{map[string]any{"address": "127.0.0.1:0"}},
			"clusters": []any{map[string]any{
				"name": "web", "endpoints": []any{"127.0.0.1:1"}, "rate_limit": map[string]any{"rate": 100},
			}},
			"mongo": []any{map[string]any{"address": "127.0.0.1:0", "endpoints": []any{"127.0.0.1:1"}}},
		}
	},
	parse: func(text []byte) error { _, err := config.Parse("f.yaml", text); return err },
}

var scenarios = surface{
	name: "a scenario",
	sections: map[string]any{
		"services.0.ingress.rate_limit": policyconf.RateLimit{}, "services.0.ingress.quota": policyconf.Quota{},
		"services.0.ingress.quota.customers.acme": policyconf.Limit{}, "services.0.ingress.shed": policyconf.Shed{},
		"services.0.ingress.attempts": policyconf.Attempts{}, "clients.0.call.throttle": policyconf.Throttle{},
		"clients.0.call.inflight": policyconf.Inflight{}, "clients.0.call.retry": policyconf.Retry{},
		"clients.0.call.retry.budget": policyconf.Budget{},
	},
	without: map[string]string{
		"tune.Config.":                   "the simulation has no tuner",
		"cost.Config.":                   "simulated services learn costs by LearnCosts of package sim",
		"fleet.Config.":                  "a simulated service is one process",
		"budget.EndpointsConfig.":        "callers have one budget each: that of budget.Config",
		"retry.MongoDBConfig.Retarget":   "it is a setting of the simulated caller, for all strategies",
		"ratelimit.Config.Exempt.CIDRs":  "simulated callers have no addresses",
		"load.Config.Interval":           "the simulation models CPU and memory, and measures them continuously",
		"load.Config.Smoothing":          "likewise",
		"load.Config.Thresholds":         "likewise",
		"load.Config.Targets.Average":    "likewise",
		"load.Config.Targets.Quota":      "likewise",
		"load.Config.Targets.Throttled":  "likewise",
		"load.Config.Targets.Scheduling": "likewise",
		"load.Config.Targets.Queue":      "likewise",
	},
	base: func() map[string]any {
		return map[string]any{
			"name": "a", "duration": "1s",
			"clients":  []any{map[string]any{"name": "web", "rate": 10, "call": map[string]any{"to": "db"}}},
			"services": []any{map[string]any{"name": "db", "cpu": "1ms", "ingress": map[string]any{"rate_limit": map[string]any{"rate": 100}}}},
		}
	},
	parse: func(text []byte) error { _, err := scenario.Parse("f.yaml", text); return err },
}

// with returns a file that has a value at a place such as clusters.0.throttle.k.
func (s *surface) with(t *testing.T, place string, value any) []byte {
	t.Helper()
	file := s.base()
	var at any = file
	parts := strings.Split(place, ".")
	for _, part := range parts[:len(parts)-1] {
		switch x := at.(type) {
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil {
				t.Fatal(place, err)
			}
			at = x[n]
		case map[string]any:
			if x[part] == nil {
				x[part] = map[string]any{}
			}
			at = x[part]
		}
	}
	at.(map[string]any)[parts[len(parts)-1]] = value //nolint:forcetypeassert // all sections are
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// try returns what is wrong with a file that has a value at a place, nil if it is good.
func (s *surface) try(t *testing.T, place string, value any) *strict.Error {
	t.Helper()
	err := s.parse(s.with(t, place, value))
	e, ok := errors.AsType[*strict.Error](err)
	if err != nil && !ok {
		t.Fatalf("%s: %v", place, err)
	}
	return e
}
