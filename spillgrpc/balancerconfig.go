package spillgrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/serviceconfig"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/invalid"
)

// BalancerConfig is what a service config says to the policy of [NewBalancer]:
//
//	{"loadBalancingConfig": [{"spillway_max_requests": {
//	    "cluster": "orders",
//	    "maxConcurrentRequests": 500,
//	    "childPolicy": [{"round_robin": {}}]
//	}}]}
//
// The names are the ones of grpc's own xds_cluster_impl. The zero BalancerConfig is
// ready for use.
type BalancerConfig struct {
	// Cluster names what the limit is for: all channels of the process with the
	// same Cluster and EDSServiceName share one. Empty means the target of the
	// channel, as it was parsed: "dns:///orders:443".
	Cluster string `json:"cluster,omitempty"`
	// EDSServiceName is the name under which the endpoints of the cluster are
	// discovered, where it has one.
	EDSServiceName string `json:"edsServiceName,omitempty"` //nolint:tagliatelle // as protobuf has it
	// MaxConcurrentRequests is the limit; 0 rejects everything. Nil leaves the limit
	// unchanged, which initially is [inflight.DefaultMaxInFlight]: leave it out if the limit
	// is set by other means. It is applied by [inflight.Limiter.Configure]: a limit that was
	// set at run time stays, until a config has another MaxConcurrentRequests than the last
	// one of the cluster.
	MaxConcurrentRequests *uint32 `json:"maxConcurrentRequests,omitempty"` //nolint:tagliatelle // as protobuf has it
	// ChildPolicy is a list of policies with their configs, the first known one
	// chooses the endpoint. Empty means round_robin.
	ChildPolicy []map[string]json.RawMessage `json:"childPolicy,omitempty"` //nolint:tagliatelle // as protobuf has it
}

// ServiceConfig returns a service config with the policy, for
// [google.golang.org/grpc.WithDefaultServiceConfig].
func (c BalancerConfig) ServiceConfig() (string, error) {
	text, err := json.Marshal(map[string]any{"loadBalancingConfig": []any{map[string]any{BalancerName: c}}})
	if err != nil {
		return "", invalid.In("spillgrpc", "ChildPolicy", err)
	}
	return string(text), nil
}

// key returns which limit c is about, on a channel to target.
func (c *BalancerConfig) key(target string) inflight.Key {
	if c.Cluster == "" {
		return inflight.Key{Cluster: target, Service: c.EDSServiceName}
	}
	return inflight.Key{Cluster: c.Cluster, Service: c.EDSServiceName}
}

// parsedConfig is a BalancerConfig whose child is known.
type parsedConfig struct {
	serviceconfig.LoadBalancingConfig
	BalancerConfig

	builder balancer.Builder
	child   serviceconfig.LoadBalancingConfig
}

// ParseConfig implements [balancer.ConfigParser]. Fields that it does not know are
// ignored, as in grpc, so that a config may be newer than a program.
func (builder) ParseConfig(text json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := new(parsedConfig)
	if err := json.Unmarshal(text, &c.BalancerConfig); err != nil {
		return nil, fmt.Errorf("spillgrpc: %s: %w", BalancerName, explain(err))
	}
	if len(c.ChildPolicy) == 0 {
		c.builder = balancer.Get(roundrobin.Name)
		return c, nil
	}
	if err := c.choose(); err != nil {
		return nil, fmt.Errorf("spillgrpc: %s: childPolicy: %w", BalancerName, err)
	}
	return c, nil
}

// explain names the field that is wrong, and what it must be.
func explain(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	if wrong.Field == "maxConcurrentRequests" {
		return fmt.Errorf("maxConcurrentRequests is %s, must be a whole number from 0 to 4294967295", wrong.Value)
	}
	return fmt.Errorf("%s is of the JSON type %s, must be %v", wrong.Field, wrong.Value, wrong.Type)
}

// choose takes the first policy of the list that is registered.
func (c *parsedConfig) choose() error {
	var unknown []string
	for i, entry := range c.ChildPolicy {
		if len(entry) != 1 {
			return fmt.Errorf("entry %d has %d policies, must have one", i, len(entry))
		}
		for name, config := range entry {
			if b := balancer.Get(name); b != nil {
				return c.take(b, config)
			}
			unknown = append(unknown, name)
		}
	}
	return fmt.Errorf("none of %s is registered in this program", strings.Join(unknown, ", "))
}

func (c *parsedConfig) take(b balancer.Builder, config json.RawMessage) error {
	c.builder = b
	parser, ok := b.(balancer.ConfigParser)
	if !ok {
		return nil
	}
	var err error
	if c.child, err = parser.ParseConfig(config); err != nil {
		return fmt.Errorf("%s: %w", b.Name(), err)
	}
	return nil
}

// drops makes the errors of a limit. An error with a status from a picker ends the call, and
// grpc does not retry it. The limit makes its rejections ahead of time, so the last error is
// reused until the limit changes.
type drops struct {
	cluster string
	last    atomic.Pointer[statusError]
}

// of returns the error for a rejection by the limit.
func (d *drops) of(rejection error) error {
	e := d.last.Load()
	if e == nil || e.error != rejection { //nolint:errorlint // the very same
		e = newStatusError(codes.Unavailable, rejection, "cluster "+d.cluster+": "+rejection.Error())
		d.last.Store(e)
	}
	return e
}
