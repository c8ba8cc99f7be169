package connlimit

import (
	"container/heap"
	"net/netip"

	"github.com/seed90641741/spillway/internal/claims"
)

// holders counts the connections of each address, of a limited total number. At the limit, a new
// connection replaces one of the address that has most. The zero value is ready. It is not safe for
// concurrent use.
type holders struct {
	all  map[netip.Prefix]*holder
	most mostFirst
}

// A holder is an address and its connections. All addresses of an IPv6 /64 are one holder, because
// one host has them.
type holder struct {
	network netip.Prefix
	places  []*place
	rank    int // index in holders.most
}

// A place is held by one connection at a time.
type place struct {
	conn   *conn
	holder *holder // nil: the place is free
	index  int     // in holder.places
}

// add gives p to c.
func (h *holders) add(p *place, c *conn) {
	network := claims.Network(address(c))
	x := h.all[network]
	if x == nil {
		x = &holder{network: network}
		if h.all == nil {
			h.all = make(map[netip.Prefix]*holder)
		}
		h.all[network] = x
		heap.Push(&h.most, x)
	}
	p.conn, p.holder, p.index = c, x, len(x.places)
	x.places = append(x.places, p)
	heap.Fix(&h.most, x.rank)
}

// remove takes p from its holder. It does nothing if p is free.
func (h *holders) remove(p *place) {
	x := p.holder
	if x == nil {
		return
	}
	last := len(x.places) - 1
	x.places[last].index = p.index
	x.places[p.index] = x.places[last]
	x.places[last] = nil
	x.places = x.places[:last]
	p.holder = nil
	if last > 0 {
		heap.Fix(&h.most, x.rank)
		return
	}
	heap.Remove(&h.most, x.rank)
	delete(h.all, x.network)
}

// excess returns a place of the address that has most, for a client that already has n places. It
// returns nil if that address has less than double the number that the client would then have:
// closing a connection costs its requests, and a small difference does not justify that. Addresses
// therefore do not close each other's connections in turn.
func (h *holders) excess(n int) *place {
	if len(h.most) == 0 {
		return nil
	}
	places := h.most[0].places
	if len(places) < 2*(n+1) {
		return nil
	}
	return places[len(places)-1]
}

// count returns how many places the address of c has.
func (h *holders) count(c *conn) int {
	if x := h.all[claims.Network(address(c))]; x != nil {
		return len(x.places)
	}
	return 0
}

// mostFirst is a heap of addresses by the number of their places.
type mostFirst []*holder

// Len is that of [heap.Interface].
func (m mostFirst) Len() int { return len(m) }

// Less is that of [heap.Interface].
func (m mostFirst) Less(i, j int) bool { return len(m[i].places) > len(m[j].places) }

// Swap is that of [heap.Interface].
func (m mostFirst) Swap(i, j int) {
	m[i], m[j] = m[j], m[i]
	m[i].rank, m[j].rank = i, j
}

// Push is that of [heap.Interface].
func (m *mostFirst) Push(x any) {
	h := x.(*holder)
	h.rank = len(*m)
	*m = append(*m, h)
}

// Pop is that of [heap.Interface].
func (m *mostFirst) Pop() any {
	last := len(*m) - 1
	x := (*m)[last]
	(*m)[last] = nil
	*m = (*m)[:last]
	return x
}
