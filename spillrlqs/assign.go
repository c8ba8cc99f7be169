package spillrlqs

import (
	"math"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	moves     = 0.02 // the relative change of a rate that is sent
	precision = 50   // tokens per fill at least, so that whole numbers are within 1 %
	maxFill   = 3600 // seconds of a fill interval
)

// assign returns the assignments of a bucket that have to be sent now.
func (b *bucket) assign(now time.Time, cfg *Config) (all []*rlqs.RateLimitQuotaResponse_BucketAction) {
	if b.id == nil {
		b.holders.divide(now, now.Add(cfg.TTL), b.share, b.pending)
		for _, id := range b.pending {
			part := b.holders[hashOf(id)].rate
			all = append(all, assignment(id, strategy(part, max(1, part*cfg.Fleet.BurstSeconds)), cfg.TTL))
		}
		b.pending = nil
		return all
	}
	if now.Sub(b.sent) < cfg.TTL/2 && same(b.given, b.share) {
		return nil
	}
	b.given, b.sent = b.share, now
	depth := max(b.share*cfg.Fleet.BurstSeconds, cfg.Fleet.LeastDepth, 1)
	a := assignment(b.id, strategy(b.share, depth), cfg.TTL)
	b.distinguish(a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket())
	return append(all, a)
}

// distinguish makes a token bucket differ from the last one in the fields that Envoys compare,
// if it differs at all. They ignore a fill interval that changes alone.
func (b *bucket) distinguish(next *envoytype.TokenBucket) {
	last := b.tokens
	b.tokens = next
	if last == nil || next == nil || last.GetTokensPerFill().GetValue() != next.GetTokensPerFill().GetValue() {
		return
	}
	// With the same fill interval, it keeps what made it differ from the one before.
	moved := last.GetFillInterval().GetSeconds() != next.GetFillInterval().GetSeconds()
	if depth := next.GetMaxTokens(); moved && last.GetMaxTokens() == depth || !moved && last.GetMaxTokens() == depth+1 {
		next.MaxTokens++
	}
}

// same reports whether a rate need not be sent again. It is false for NaN.
func same(given, share float64) bool {
	return given == share || math.Abs(share-given) <= moves*given
}

// assignment tells an Envoy how much a bucket may use.
func assignment(id *rlqs.BucketId, rule *envoytype.RateLimitStrategy, ttl time.Duration) *rlqs.RateLimitQuotaResponse_BucketAction {
	return &rlqs.RateLimitQuotaResponse_BucketAction{
		BucketId: id,
		BucketAction: &rlqs.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
			QuotaAssignmentAction: &rlqs.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
				AssignmentTimeToLive: durationpb.New(ttl),
				RateLimitStrategy:    rule,
			},
		},
	}
}

// abandonment tells an Envoy to forget a bucket.
func abandonment(id *rlqs.BucketId) *rlqs.RateLimitQuotaResponse_BucketAction {
	return &rlqs.RateLimitQuotaResponse_BucketAction{
		BucketId:     id,
		BucketAction: &rlqs.RateLimitQuotaResponse_BucketAction_AbandonAction_{AbandonAction: &rlqs.RateLimitQuotaResponse_BucketAction_AbandonAction{}},
	}
}

// strategy returns a rate and the depth of its bucket in the terms that Envoys understand:
// whole tokens, and whole seconds between fills.
func strategy(rate, depth float64) *envoytype.RateLimitStrategy {
	switch {
	case rate > math.MaxUint32/2: // most of all, no limit
		return blanket(envoytype.RateLimitStrategy_ALLOW_ALL)
	case !(rate*maxFill >= 1):
		return blanket(envoytype.RateLimitStrategy_DENY_ALL)
	}
	fill := min(max(1, math.Ceil(precision/rate)), maxFill)
	return &envoytype.RateLimitStrategy{Strategy: &envoytype.RateLimitStrategy_TokenBucket{
		TokenBucket: &envoytype.TokenBucket{
			MaxTokens:     uint32(min(math.Ceil(depth), math.MaxUint32)),
			TokensPerFill: wrapperspb.UInt32(uint32(math.Round(rate * fill))),
			FillInterval:  durationpb.New(time.Duration(fill) * time.Second),
		},
	}}
}

func blanket(rule envoytype.RateLimitStrategy_BlanketRule) *envoytype.RateLimitStrategy {
	return &envoytype.RateLimitStrategy{Strategy: &envoytype.RateLimitStrategy_BlanketRule_{BlanketRule: rule}}
}
