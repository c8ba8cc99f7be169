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
	Name     string        `json:"name"` // without the cluster, as a route has it
	InFlight int           `json:"in_flight"`
	Limit    float64       `json:"limit"` // 0: it holds nothing back
	Bound    bool          `json:"bound"` // a queue was found, or is being looked for
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
		name := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(k.Key, cluster), ": "), "/")
		x := Key{Name: name, InFlight: k.InFlight, Bound: k.Limiting(), Baseline: k.BaseLatency, Latency: k.Latency}
		if !math.IsInf(k.Limit, 1) {
			x.Limit = k.Limit
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Key) int { return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(a.Name, b.Name)) })
	return all[:min(len(all), mostKeys)]
}
