package accounts

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/slow"
)

// A Place is the listener that a request came to, and the cluster and the route that it matched.
// Cluster and Route are empty without a match.
type Place struct{ Listener, Cluster, Route string }

// KeySeparator separates the cluster from the rest in the key of a call, which names a route.
const KeySeparator = ": "

// MaxPlaces is the number of places with counts of their own, for the life of a Book. All later
// ones share the counts of [Elsewhere].
const MaxPlaces = 50

// Elsewhere is the Place of requests of other places than the first MaxPlaces.
var Elsewhere = Place{"other", "other", "other"}

// Counts are the accounts of one place. They are safe for concurrent use.
type Counts struct {
	ended    [Count][spillway.Criticalities]atomic.Uint64
	retried  [Count]atomic.Uint64
	rejected [Reasons]atomic.Uint64
	latency  slow.Counts // of those that were served
}

// At returns the counts of a place. It allocates for the first call of a place only.
func (b *Book) At(p Place) *Counts { return b.places.Get(p, MaxPlaces, Elsewhere) }

func (c *Counts) end(e *End) {
	if e.Account == Served && e.Sent > 0 {
		c.latency.Add(e.Waited, e.Sent)
	}
	if e.Account == Rejected {
		c.rejected[e.Reason].Add(1)
	}
	c.ended[e.Account][e.Criticality.Index()].Add(1)
	if e.Retried {
		c.retried[e.Account].Add(1)
	}
}

func (c *Counts) addTo(t *Totals) {
	for a := range c.ended {
		t.Retried[a] += c.retried[a].Load()
		for class := range c.ended[a] {
			t.Ended[a][class] += c.ended[a][class].Load()
		}
	}
	for reason := range c.rejected {
		t.Rejected[reason] += c.rejected[reason].Load()
	}
}

// A PlaceTotal has the accounts of a place at one time.
type PlaceTotal struct {
	Place

	Ended    [Count]uint64
	Rejected [Reasons]uint64 // of Ended[Rejected], by reason
	Latency  slow.Totals     // of Ended[Served]
}

// total returns the accounts of the place p.
func (c *Counts) total(p Place) PlaceTotal {
	var t Totals
	c.addTo(&t)
	all := PlaceTotal{Place: p, Rejected: t.Rejected, Latency: c.latency.Read()} // whatever has ended is in Latency
	for a := range all.Ended {
		all.Ended[a] = t.Of(Account(a))
	}
	return all
}

// Places returns the accounts of each place, in a fixed order. Requests without a place come
// first, if there are any.
func (b *Book) Places() (all []PlaceTotal) {
	if none := b.unplaced.total(Place{}); none.Ended != [Count]uint64{} {
		all = append(all, none)
	}
	for p, c := range b.places.All() {
		all = append(all, c.total(p))
	}
	slices.SortFunc(all, func(x, y PlaceTotal) int {
		return cmp.Or(cmp.Compare(x.Listener, y.Listener), cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Route, y.Route))
	})
	return all
}
