package spillxds

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed90641741/spillway/inflight"
)

const (
	clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	wrapperType = "type.googleapis.com/envoy.service.discovery.v3.Resource"

	// maxName bounds what a server can make us remember for each cluster.
	maxName = 4096

	unlimited = math.MaxUint32
)

// Limits are what a Cluster resource says about how much may be sent.
type Limits struct {
	// MaxRequests is the maximum number of requests in flight. 0 rejects all; math.MaxInt32
	// and above mean no limit.
	MaxRequests uint32
	// Retries is the maximum number of retries in flight; math.MaxUint32 means no limit. A
	// retry counts from the decision to make it, so its wait counts too.
	Retries uint32
	// RetryPercent is the maximum number of retries in flight as a percentage of the requests
	// in flight, if that is more than Retries.
	RetryPercent float64
}

// defaultLimits are in force until the control plane has answered.
var defaultLimits = Limits{MaxRequests: inflight.DefaultMaxInFlight, Retries: unlimited}

// A resource is the part of a Cluster resource that is used here.
type resource struct {
	name, service string // of the cluster, and of its endpoints (EDS)
	limits        Limits
	ignored       string // of its circuit breakers
	report        bool   // loads, to the server that the resource is from
}

// errUnchanged says that a resource without content keeps alive the one that was sent
// before. For how long is ignored: limits stay.
var errUnchanged = errors.New("spillxds: the resource has not changed")

// parse returns what is in a Cluster resource, wrapped or not. If it is not valid
// the result has no more than its name, as far as that could be read.
func parse(a *anypb.Any) (resource, error) {
	if a == nil {
		return resource{}, errUnchanged
	}
	if a.GetTypeUrl() == wrapperType {
		var w discoveryv3.Resource
		if err := a.UnmarshalTo(&w); err != nil {
			return resource{}, errors.New("the wrapper of a resource cannot be read")
		}
		if a = w.GetResource(); a == nil {
			return resource{name: w.GetName()}, errUnchanged
		}
	}
	if a.GetTypeUrl() != clusterType {
		return resource{}, fmt.Errorf("a resource has type %.80q, want a Cluster", a.GetTypeUrl())
	}
	var c clusterv3.Cluster
	if err := a.UnmarshalTo(&c); err != nil {
		return resource{}, errors.New("a Cluster cannot be read")
	}
	switch name := c.GetName(); {
	case name == "":
		return resource{}, errors.New("a Cluster has no name")
	case len(name) > maxName || len(c.GetEdsClusterConfig().GetServiceName()) > maxName:
		return resource{}, fmt.Errorf("the name of a Cluster is longer than %d bytes", maxName)
	}
	limits, err := limitsOf(c.GetCircuitBreakers())
	if err != nil {
		return resource{name: c.GetName()}, fmt.Errorf("cluster %.100q: %w", c.GetName(), err)
	}
	return resource{
		name: c.GetName(), service: c.GetEdsClusterConfig().GetServiceName(),
		limits: limits, ignored: ignoredOf(c.GetCircuitBreakers()), report: c.GetLrsServer().GetSelf() != nil,
	}, nil
}

// limitsOf returns what the first entry with the priority DEFAULT says. What it
// leaves out is not looked for in the next one.
func limitsOf(breakers *clusterv3.CircuitBreakers) (Limits, error) {
	if err := breakers.Validate(); err != nil {
		return Limits{}, err
	}
	limits := defaultLimits
	for _, t := range breakers.GetThresholds() {
		if t.GetPriority() != corev3.RoutingPriority_DEFAULT {
			continue
		}
		if v := t.GetMaxRequests(); v != nil {
			limits.MaxRequests = v.GetValue()
		}
		if v := t.GetMaxRetries(); v != nil {
			limits.Retries = v.GetValue()
		}
		if b := t.GetRetryBudget(); b != nil {
			return limits.withBudget(b)
		}
		break
	}
	return limits, nil
}

// ignoredOf names what is set and means nothing here, in the order of the message.
func ignoredOf(breakers *clusterv3.CircuitBreakers) string {
	var all []string
	note := func(set bool, name string) {
		if set && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	counts := true // the next entry of the priority DEFAULT
	for _, t := range breakers.GetThresholds() {
		if t.GetPriority() != corev3.RoutingPriority_DEFAULT {
			note(true, "priority HIGH")
			continue
		}
		note(!counts, "a further entry of priority DEFAULT")
		if !counts {
			continue
		}
		counts = false
		note(t.GetMaxConnections() != nil, "max_connections")
		note(t.GetMaxPendingRequests() != nil, "max_pending_requests")
		note(t.GetMaxRetries() != nil && t.GetRetryBudget() != nil, "max_retries beside retry_budget")
		note(t.GetRetryBudget().GetBudgetInterval() != nil, "budget_interval")
		note(t.GetTrackRemaining(), "track_remaining")
		note(t.GetMaxConnectionPools() != nil, "max_connection_pools")
	}
	note(len(breakers.GetPerHostThresholds()) > 0, "per_host_thresholds")
	return strings.Join(all, ", ")
}

// withBudget returns l with the retries that b allows. The generated validation
// lets a percentage pass that is not a number.
func (l Limits) withBudget(b *clusterv3.CircuitBreakers_Thresholds_RetryBudget) (Limits, error) {
	l.Retries, l.RetryPercent = 3, 20
	if v := b.GetMinRetryConcurrency(); v != nil {
		l.Retries = v.GetValue()
	}
	if v := b.GetBudgetPercent(); v != nil {
		l.RetryPercent = v.GetValue()
	}
	if !(l.RetryPercent >= 0 && l.RetryPercent <= 100) {
		return Limits{}, errors.New("retry_budget.budget_percent must be 0 to 100")
	}
	return l, nil
}
