package importer

import (
	"strings"
	"testing"
)

// TestLocalRateLimits imports filters that reject all, some or none of what is above the bucket, and wrong ones.
func TestLocalRateLimits(t *testing.T) {
	const bucket = "token_bucket: {max_tokens: 50, tokens_per_fill: 20, fill_interval: 2s}, "
	const all, some = "{default_value: {numerator: 100}}", "{default_value: {numerator: 100, denominator: MILLION}}"
	const listener = "{name: l, address: {socket_address: {address: 10.0.0.1, port_value: 80}}, filter_chains: [{filters: " +
		"[{typed_config: {'@type': x.HttpConnectionManager, http_filters: [{typed_config: {'@type': x.LocalRateLimit, FILTER}}]}}]}]}"
	for _, row := range []struct{ filter, mode, why string }{
		{bucket + "filter_enabled: " + all + ", filter_enforced: " + all, "enforce", "it is for each cluster"},
		{bucket + "filter_enabled: " + all, "observe", ""},
		{"token_bucket: {max_tokens: 5, fill_interval: 0.1s}, filter_enabled: " + all, "observe", ""}, // 1 for each
		{bucket + "filter_enforced: " + all, "", "it is off in Envoy"},
		{bucket + "filter_enabled: " + some + ", filter_enforced: " + all, "", "it is for a share"},
		{bucket + "filter_enabled: " + all + ", filter_enforced: " + some, "", "it is for a share"},
		{bucket + "filter_enabled: {default_value: {numerator: many}}", "", "it is for a share"},
		{"token_bucket: {max_tokens: 5, fill_interval: soon}, filter_enabled: " + all, "", "its token_bucket cannot be read"},
		{"token_bucket: {max_tokens: 0, fill_interval: 1s}, filter_enabled: " + all, "", "its token_bucket cannot be read"},
		{"token_bucket: {max_tokens: 2147483647, tokens_per_fill: 2147483647, fill_interval: 0.000000001s}, filter_enabled: " + all, "", "the proxy does not accept it"},
	} {
		r := envoyOf(t, "clusters: [{name: a, lb_policy: RANDOM}, {name: b, lb_policy: RANDOM}]\nlisteners: ["+strings.Replace(listener, "FILTER", row.filter, 1)+"]")
		for _, x := range r.Config.Clusters {
			limit := x.RateLimit
			if string(limit.Mode) != row.mode || row.mode != "" && (limit.Rate != 10 || limit.BurstSeconds != 5 && limit.BurstSeconds != 0.5) {
				t.Errorf("%s: %+v", row.filter, limit)
			}
		}
		if !noted(r, "listeners[0].filter_chains[0].filters[0].typed_config.http_filters[0]", row.why) {
			t.Errorf("%s: no note that %s in %v", row.filter, row.why, r.Notes)
		}
	}
	filter := bucket + "filter_enabled: " + all
	two := strings.Replace(listener, "FILTER", filter, 1) + ", " + strings.NewReplacer("FILTER", filter, "10.0.0.1", "10.0.0.2", "name: l", "name: m").Replace(listener)
	if r := envoyOf(t, "clusters: [{name: a, lb_policy: RANDOM}]\nlisteners: ["+two+"]"); r.Config.Clusters[0].RateLimit.Rate != 0 || r.Counts()[Limit] == 0 {
		t.Errorf("two listeners: %+v, %v", r.Config.Clusters[0].RateLimit, r.Notes)
	}
}
