package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// Name returns the name of the route in metrics, logs and pages: the cluster, and the key of the route, by default its
// host, path and methods. Clients cannot make up names: there is at most one for each route.
func (r *Route) Name() string {
	if r.Key != "" {
		return r.LimitKey()
	}
	name := r.Cluster + accounts.KeySeparator + r.Host + r.Path
	if len(r.Methods) > 0 {
		name += " " + strings.Join(r.Methods, ",")
	}
	return strings.TrimSuffix(name, accounts.KeySeparator)
}

// LimitKey returns the name of what requests of the route wait for, and so of the limit on their number in flight: the
// cluster, or a part of it that the route names.
func (r *Route) LimitKey() string {
	if r.Key == "" {
		return r.Cluster
	}
	return r.Cluster + accounts.KeySeparator + r.Key
}

// limitKey returns what makes the limit key of the name of a route to a cluster.
func (c *Config) limitKey(cluster string) func(name string) string {
	own := make(map[string]bool)
	for i := range c.Routes {
		if r := &c.Routes[i]; r.Cluster == cluster && r.Key != "" {
			own[r.LimitKey()] = true
		}
	}
	return func(name string) string {
		if own[name] {
			return name
		}
		return cluster
	}
}

// limitKeys returns the limit keys of the routes to a cluster.
func (k *checker) limitKeys(cluster string) (keys []string) {
	seen := make(map[string]bool)
	for _, i := range k.to[cluster] {
		if key := k.routes[i].LimitKey(); !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// maxByKey checks the caps of a shedder by the limit keys that requests to a cluster have.
func (k *checker) maxByKey(at, cluster string, x *Shed, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(x.MaxInFlightByKey)) {
		if !slices.Contains(known, name) {
			k.failf(fmt.Sprintf("%s[%q]", at, name), "is not a key of the routes to %s, must be one of %q: give a route its own key to cap it apart", cluster, known)
		}
	}
}
