package spillgrpc

import "context"

// Charge adds cost to what the call of ctx costs the quota of its customer, or gives it
// back where cost is negative. Call it when the handler knows what the call costs. The
// call itself costs quota.Config.Cost, 1 by default, when it is admitted; cost is what
// comes on top. The unit is that of the rates of the quota. A stream can be charged for each
// message.
//
// ctx is the context of the call or stream, or one derived from it. Several charges add up. Charge
// does nothing once the handler has returned, for a call that is exempt, without a quota, and for a
// cost that is not finite. It allocates nothing and is safe for concurrent use.
func Charge(ctx context.Context, cost float64) {
	if s, ok := ctx.Value(chargeKey{}).(*servedCall); ok && s.slot != nil && s.charging.Begin() {
		s.slot.Charge(s.clock.Now(), cost)
	}
}

// chargeKey is the key by which a context finds the call that it belongs to.
type chargeKey struct{}
