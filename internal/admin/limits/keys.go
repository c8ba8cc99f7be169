package limits

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/concurrency"
)

// A Key is the limit on requests in flight of one key of a gate.
type Key struct {
	Name     string        `json:"name"` // what requests wait for: the cluster, or what the key of a route names in it
	InFlight int           `json:"in_flight"`
	Limit    float64       `json:"limit"`   // 0: it holds nothing back
	Shared   bool          `json:"shared"`  // the limit is that of all keys
	Bound    bool          `json:"bound"`   // a queue was found, or is being looked for
	Unknown  bool          `json:"unknown"` // requests end and none is answered: one at a time is let in
	Baseline time.Duration `json:"baseline"`
	Latency  time.Duration `json:"latency"` // the recent mean
}

// mostKeys is how many keys of a gate are shown.
const mostKeys = 20

// Keys returns the keys of a gate to a cluster that have had requests, those with most requests in
// flight first.
func Keys(cluster string, s *concurrency.Stats) (all []Key) {
	for i := range s.Keys {
		k := &s.Keys[i]
		if k.InFlight+k.Parked == 0 && k.Latency == 0 && k.Throughput == 0 {
			continue
		}
		counts := k
		if s.Shared.Limiting() {
			counts = &s.Shared
		}
		name := strings.TrimPrefix(k.Key, cluster+": ")
		x := Key{
			Name: name, InFlight: k.InFlight, Shared: counts != k, Bound: counts.Limiting(), Unknown: counts.Unknown,
			Baseline: k.BaseLatency, Latency: k.Latency,
		}
		if !math.IsInf(counts.Limit, 1) {
			x.Limit = counts.Limit
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Key) int { return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(a.Name, b.Name)) })
	return all[:min(len(all), mostKeys)]
}
