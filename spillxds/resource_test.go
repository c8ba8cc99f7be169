package spillxds

import (
	"math"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func packed(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestIgnored says what a control plane sets in vain.
func TestIgnored(t *testing.T) {
	for breakers, want := range map[string]string{
		`{}`: "",
		`{"thresholds":[{"maxRequests":7,"maxRetries":2}]}`:                                    "",
		`{"thresholds":[{"priority":"HIGH","maxRequests":1},{"priority":"HIGH"}]}`:             "priority HIGH",
		`{"thresholds":[{"maxRequests":7},{"maxRequests":8}]}`:                                 "a further entry of priority DEFAULT",
		`{"thresholds":[{"retryBudget":{"budgetInterval":"1s"},"maxRetries":50}]}`:             "max_retries beside retry_budget, budget_interval",
		`{"thresholds":[{"maxConnectionPools":3,"trackRemaining":true,"maxConnections":1}]}`:   "max_connections, track_remaining, max_connection_pools",
		`{"thresholds":[{"maxPendingRequests":2}],"perHostThresholds":[{"maxConnections":1}]}`: "max_pending_requests, per_host_thresholds",
	} {
		var b clusterv3.CircuitBreakers
		if err := protojson.Unmarshal([]byte(breakers), &b); err != nil {
			t.Fatal(err)
		}
		r, err := parse(packed(t, &clusterv3.Cluster{Name: "users", CircuitBreakers: &b}))
		if err != nil || r.ignored != want {
			t.Errorf("%s: %q, %v, want %q", breakers, r.ignored, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	const none = math.MaxUint32
	for name, row := range map[string]struct {
		json string
		want Limits
		err  string // part of it
	}{
		"nothing":             {`{}`, Limits{1024, none, 0}, ""},
		"no thresholds":       {`{"circuitBreakers":{}}`, Limits{1024, none, 0}, ""},
		"max_requests":        {`{"circuitBreakers":{"thresholds":[{"maxRequests":7}]}}`, Limits{7, none, 0}, ""},
		"zero rejects all":    {`{"circuitBreakers":{"thresholds":[{"maxRequests":0}]}}`, Limits{0, none, 0}, ""},
		"the greatest":        {`{"circuitBreakers":{"thresholds":[{"maxRequests":4294967295}]}}`, Limits{none, none, 0}, ""},
		"HIGH is skipped":     {`{"circuitBreakers":{"thresholds":[{"priority":"HIGH","maxRequests":1},{"maxRequests":7}]}}`, Limits{7, none, 0}, ""},
		"only HIGH":           {`{"circuitBreakers":{"thresholds":[{"priority":"HIGH","maxRequests":1}]}}`, Limits{1024, none, 0}, ""},
		"first DEFAULT wins":  {`{"circuitBreakers":{"thresholds":[{"maxRequests":7},{"maxRequests":8,"maxRetries":9}]}}`, Limits{7, none, 0}, ""},
		"no further search":   {`{"circuitBreakers":{"thresholds":[{"maxRetries":2},{"maxRequests":8}]}}`, Limits{1024, 2, 0}, ""},
		"ignored fields":      {`{"circuitBreakers":{"thresholds":[{"maxConnections":1,"maxPendingRequests":2,"maxConnectionPools":3,"trackRemaining":true}],"perHostThresholds":[{"maxConnections":1}]}}`, Limits{1024, none, 0}, ""},
		"no retries":          {`{"circuitBreakers":{"thresholds":[{"maxRetries":0}]}}`, Limits{1024, 0, 0}, ""},
		"budget by default":   {`{"circuitBreakers":{"thresholds":[{"retryBudget":{},"maxRetries":50}]}}`, Limits{1024, 3, 20}, ""},
		"budget":              {`{"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":12.5},"minRetryConcurrency":1,"budgetInterval":"1s"}}]}}`, Limits{1024, 1, 12.5}, ""},
		"budget of nothing":   {`{"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":0},"minRetryConcurrency":0}}]}}`, Limits{1024, 0, 0}, ""},
		"percent too high":    {`{"circuitBreakers":{"thresholds":[{"maxRequests":7,"retryBudget":{"budgetPercent":{"value":101}}}]}}`, Limits{}, "BudgetPercent"},
		"percent negative":    {`{"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":-1}}}]}}`, Limits{}, "BudgetPercent"},
		"percent not any":     {`{"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":"NaN"}}}]}}`, Limits{}, "budget_percent"},
		"unknown priority":    {`{"circuitBreakers":{"thresholds":[{"maxRequests":7},{"priority":7}]}}`, Limits{}, "Priority"},
		"bad entry for HIGH":  {`{"circuitBreakers":{"thresholds":[{"priority":"HIGH","retryBudget":{"budgetPercent":{"value":200}}}]}}`, Limits{}, "BudgetPercent"},
		"per host, not valid": {`{"circuitBreakers":{"perHostThresholds":[{"priority":9}]}}`, Limits{}, "PerHostThresholds"},
	} {
		t.Run(name, func(t *testing.T) {
			var c clusterv3.Cluster
			if err := protojson.Unmarshal([]byte(row.json), &c); err != nil {
				t.Fatal(err)
			}
			c.Name = "users"
			a := packed(t, &c)
			for _, a := range []*anypb.Any{a, packed(t, &discoveryv3.Resource{Name: "users", Resource: a})} {
				r, err := parse(a)
				if row.err != "" {
					if err == nil || !strings.Contains(err.Error(), row.err) || r != (resource{name: "users"}) {
						t.Errorf("%+v, %v; want an error with %q", r, err, row.err)
					}
					continue
				}
				if err != nil || r.limits != row.want || r.name != "users" {
					t.Errorf("%+v, %v; want %+v", r, err, row.want)
				}
			}
		})
	}
}

func TestParseNames(t *testing.T) {
	c := &clusterv3.Cluster{
		Name: "users", EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{ServiceName: "s"},
		LrsServer: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: new(corev3.SelfConfigSource)}},
	}
	if r, err := parse(packed(t, c)); err != nil || r.service != "s" || !r.report {
		t.Errorf("%+v, %v", r, err)
	}
	c.LrsServer = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: new(corev3.AggregatedConfigSource)}}
	if r, err := parse(packed(t, c)); err != nil || r.report {
		t.Errorf("reports to another server: %+v, %v", r, err)
	}
	long := strings.Repeat("x", maxName+1)
	for name, a := range map[string]*anypb.Any{
		"nil":          nil,
		"empty":        {},
		"another type": packed(t, wrapperspb.Bool(true)),
		"no name":      packed(t, new(clusterv3.Cluster)),
		"long name":    packed(t, &clusterv3.Cluster{Name: long}),
		"long service": packed(t, &clusterv3.Cluster{Name: "a", EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{ServiceName: long}}),
		"no cluster":   {TypeUrl: clusterType, Value: []byte{0xff}},
		"no wrapper":   {TypeUrl: wrapperType, Value: []byte{0xff}},
		"empty inside": packed(t, new(discoveryv3.Resource)),
		"nested":       packed(t, &discoveryv3.Resource{Resource: packed(t, &discoveryv3.Resource{Resource: packed(t, c)})}),
	} {
		if r, err := parse(a); err == nil || r != (resource{}) || len(err.Error()) > 200 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// naive reads max_requests off a Cluster, knowing nothing of validity.
func naive(a *anypb.Any) (name string, limit uint32) {
	var c clusterv3.Cluster
	var w discoveryv3.Resource
	if a.GetTypeUrl() == wrapperType && proto.Unmarshal(a.GetValue(), &w) == nil {
		a = w.GetResource()
	}
	if proto.Unmarshal(a.GetValue(), &c) != nil {
		return "", 0
	}
	limit = 1024
	for i := len(c.GetCircuitBreakers().GetThresholds()) - 1; i >= 0; i-- {
		t := c.GetCircuitBreakers().GetThresholds()[i]
		if t.GetPriority() == corev3.RoutingPriority_DEFAULT {
			limit = 1024
			if v := t.GetMaxRequests(); v != nil {
				limit = v.GetValue()
			}
		}
	}
	return c.GetName(), limit
}

func FuzzCluster(f *testing.F) {
	percent := &clusterv3.CircuitBreakers_Thresholds_RetryBudget{BudgetPercent: &typev3.Percent{Value: math.NaN()}}
	for _, c := range []*clusterv3.Cluster{
		{Name: "users"},
		{Name: "users", CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			{Priority: corev3.RoutingPriority_HIGH, MaxRequests: wrapperspb.UInt32(1)}, {MaxRequests: wrapperspb.UInt32(5), RetryBudget: percent},
		}}},
	} {
		a := packed(f, c)
		f.Add(a.GetTypeUrl(), a.GetValue())
		w := packed(f, &discoveryv3.Resource{Resource: a})
		f.Add(w.GetTypeUrl(), w.GetValue())
	}
	f.Fuzz(func(t *testing.T, typeURL string, value []byte) {
		a := &anypb.Any{TypeUrl: typeURL, Value: value}
		r, err := parse(a)
		if err != nil {
			if r != (resource{name: r.name}) {
				t.Fatalf("an error and %+v", r)
			}
			return
		}
		name, limit := naive(a)
		if r.name == "" || r.name != name || r.limits.MaxRequests != limit {
			t.Fatalf("%+v, want %q with %d", r, name, limit)
		}
		if p := r.limits.RetryPercent; !(p >= 0 && p <= 100) {
			t.Fatalf("%v percent", p)
		}
	})
}
