package accounts

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/slow"
)

// A Place is the listener that a request came to, and the cluster and the route that it matched.
// Cluster and Route are empty without a match.
type Place struct{ Listener, Cluster, Route string }

// MaxPlaces is the number of places with counts of their own, for the life of a Book. All later
// ones share the counts of [Elsewhere].
const MaxPlaces = 50

// Elsewhere is the Place of requests of other places than the first MaxPlaces.
var Elsewhere = Place{"other", "other", "other"}

// Counts are the accounts of one place. They are safe for concurrent use.
type Counts struct {
	place    Place
	ended    [Count]atomic.Uint64
	rejected [Reasons]atomic.Uint64
	latency  slow.Counts // of those that were served
}

// places are the counts of each place.
type places struct {
	mu       sync.Mutex                        // of those who add a place
	all      atomic.Pointer[map[Place]*Counts] // is replaced, and not changed
	unplaced Counts                            // of requests without a place
}

// At returns the counts of a place. It allocates for the first call of a place only.
func (b *Book) At(p Place) *Counts { return b.places.at(p) }

func (b *places) at(p Place) *Counts {
	if c := b.known(p); c != nil {
		return c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more := make(map[Place]*Counts)
	if all := b.all.Load(); all != nil {
		maps.Copy(more, *all)
	}
	if _, ok := more[p]; !ok && len(more) >= MaxPlaces {
		p = Elsewhere
	}
	if more[p] == nil {
		more[p] = &Counts{place: p}
		b.all.Store(&more)
	}
	return more[p]
}

// known returns the counts of a place that was asked for before, nil for another.
func (b *places) known(p Place) *Counts {
	all := b.all.Load()
	if all == nil {
		return nil
	}
	if c := (*all)[p]; c != nil || len(*all) <= MaxPlaces {
		return c
	}
	return (*all)[Elsewhere]
}

// end counts the end of a request.
func (b *places) end(e *End) {
	c := cmp.Or(e.At, &b.unplaced)
	if e.Account == Served && e.Sent > 0 {
		c.latency.Add(e.Waited, e.Sent)
	}
	if e.Account == Rejected {
		c.rejected[e.Reason].Add(1)
	}
	c.ended[e.Account].Add(1)
}

// A PlaceTotal has the accounts of a place at one time.
type PlaceTotal struct {
	Place

	Ended    [Count]uint64
	Rejected [Reasons]uint64 // of Ended[Rejected], by reason
	Latency  slow.Totals     // of Ended[Served]
}

// Places returns the accounts of each place, in a fixed order.
func (b *Book) Places() (all []PlaceTotal) {
	if c := &b.places.unplaced; c.used() {
		all = append(all, c.read())
	}
	if known := b.places.all.Load(); known != nil {
		for _, c := range *known {
			all = append(all, c.read())
		}
	}
	slices.SortFunc(all, func(x, y PlaceTotal) int {
		return cmp.Or(cmp.Compare(x.Listener, y.Listener), cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Route, y.Route))
	})
	return all
}

func (c *Counts) used() bool {
	for a := range c.ended {
		if c.ended[a].Load() > 0 {
			return true
		}
	}
	return false
}

func (c *Counts) read() (t PlaceTotal) {
	t.Place = c.place
	for a := range c.ended {
		t.Ended[a] = c.ended[a].Load()
	}
	t.Latency = c.latency.Read() // whatever has ended is in it
	for reason := range c.rejected {
		t.Rejected[reason] = c.rejected[reason].Load()
	}
	return t
}
