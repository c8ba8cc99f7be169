package spillhttp

import (
	"context"
	"sync/atomic"

	"github.com/seed90641741/spillway/ingress"
)

// Charge adds cost to what the request of ctx costs the quota of its customer, or gives it
// back where cost is negative. Call it when the handler knows what the request costs. The
// request itself costs quota.Config.Cost, 1 by default, when it is admitted; cost is what
// comes on top. The unit is that of the rates of the quota.
//
// ctx is the context of the request, or one derived from it. Several charges add up. Charge does nothing
// once the handler has returned, for a request that is exempt, without a quota, and for a cost that
// is not finite. It allocates nothing and is safe for concurrent use.
func Charge(ctx context.Context, cost float64) {
	if h, ok := ctx.Value(chargeKey{}).(*heir); ok && h.charging.begin() {
		h.charging.passage.Charge(h.response.clock.Now(), cost)
	}
}

// chargeKey is the key by which a context finds the request that it belongs to.
type chargeKey struct{}

// The states of a charging.
const (
	uncharged = iota
	charged   // its passage serves no other request: a late charge may still find it
	ended
)

// A charging says whether a request can be charged.
type charging struct {
	passage *ingress.Passage
	state   atomic.Int32
}

// begin reports whether the request can be charged.
func (c *charging) begin() bool {
	return c.state.Load() == charged || c.state.CompareAndSwap(uncharged, charged) || c.state.Load() == charged
}

// end ends charging, and reports whether there was no charge.
func (c *charging) end() bool { return c.state.Swap(ended) == uncharged }
