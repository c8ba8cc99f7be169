package spillhttp

import "context"

// Charge adds cost to what the request of ctx costs the quota of its customer, or gives it
// back where cost is negative. Call it when the handler knows what the request costs. The
// request itself costs quota.Config.Cost, 1 by default, when it is admitted; cost is what
// comes on top. The unit is that of the rates of the quota.
//
// ctx is the context of the request, or one derived from it. Several charges add up. Charge does nothing
// once the handler has returned, for a request that is exempt, without a quota, and for a cost that
// is not finite. It allocates nothing and is safe for concurrent use.
func Charge(ctx context.Context, cost float64) {
	if h, ok := ctx.Value(chargeKey{}).(*heir); ok && h.charging.Begin() {
		h.passage.Charge(h.response.clock.Now(), cost)
	}
}

// chargeKey is the key by which a context finds the request that it belongs to.
type chargeKey struct{}
