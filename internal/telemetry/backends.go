package telemetry

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed90641741/spillway/internal/frequent"
)

// A Backend has the levels of a client's calls to one backend.
type Backend struct {
	Key                       string
	InFlight, Limit, Throttle float64
}

// Backends adds up the levels of backends by key. The zero Backends is ready for use.
type Backends struct{ all map[string]Backend }

// Add adds the levels of a backend: those in flight and their limit are added up, of the
// throttle the highest counts.
func (x *Backends) Add(b Backend) {
	if x.all == nil {
		x.all = make(map[string]Backend)
	}
	b.Key = frequent.Text(b.Key)
	sum := x.all[b.Key]
	x.all[b.Key] = Backend{b.Key, sum.InFlight + b.InFlight, sum.Limit + b.Limit, max(sum.Throttle, b.Throttle)}
}

// Top returns at most n backends: the most throttled first, then those with most calls in
// flight. Zero means [DefaultBackends], negative none.
func (x *Backends) Top(n int) []Backend {
	if n < 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Values(x.all), func(a, b Backend) int {
		return cmp.Or(cmp.Compare(b.Throttle, a.Throttle), cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(cmp.Or(n, DefaultBackends), len(all))]
}
