package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// KeySeparator separates the cluster from the rest of a limit key.
const KeySeparator = ": "

// LimitKey returns the key of the route's concurrency limit: the cluster, and the key of the
// route, by default its host, path and methods. Clients cannot make up keys: there is at most one for each route.
func (r *Route) LimitKey() string {
	if r.Key != "" {
		return r.Cluster + KeySeparator + r.Key
	}
	key := r.Cluster + KeySeparator + r.Host + r.Path
	if len(r.Methods) > 0 {
		key += " " + strings.Join(r.Methods, ",")
	}
	return strings.TrimSuffix(key, KeySeparator)
}

// limitKeys returns the limit keys of the routes to a cluster.
func (k *checker) limitKeys(cluster string) (keys []string) {
	for i := range k.routes {
		if r := &k.routes[i]; r.Cluster == cluster {
			keys = append(keys, r.LimitKey())
		}
	}
	return keys
}

// maxByKey checks the caps of a shedder by the limit keys that requests to a cluster have.
func (k *checker) maxByKey(at, cluster string, x *Shed, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(x.MaxByKey)) {
		if !slices.Contains(known, name) {
			k.failf(fmt.Sprintf("%s[%q]", at, name), "is the limit key of no route to %s, must be one of %q", cluster, known)
		}
	}
}
