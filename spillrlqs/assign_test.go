package spillrlqs

import (
	"math"
	"testing"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

var t0 = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// rateOf is the rate that Envoy makes of a token bucket.
func rateOf(b *envoytype.TokenBucket) float64 {
	if b == nil {
		return 0
	}
	return float64(b.GetTokensPerFill().GetValue()) / float64(b.GetFillInterval().GetSeconds())
}

func TestRatesAreExactInWholeNumbers(t *testing.T) {
	for rate := 0.02; rate < 1e9; rate *= 1.07 {
		b := strategy(rate, 3).GetTokenBucket()
		if got := rateOf(b); math.Abs(got-rate) > 0.011*rate {
			t.Errorf("%v becomes %v", rate, got)
		}
		if b.GetFillInterval().GetNanos() != 0 || b.GetFillInterval().GetSeconds() < 1 || b.GetMaxTokens() < 1 {
			t.Errorf("%v: %v is not what Envoys understand", rate, b)
		}
	}
	for rate, want := range map[float64]envoytype.RateLimitStrategy_BlanketRule{
		0: envoytype.RateLimitStrategy_DENY_ALL, 1e-5: envoytype.RateLimitStrategy_DENY_ALL,
		math.Inf(1): envoytype.RateLimitStrategy_ALLOW_ALL, 1e12: envoytype.RateLimitStrategy_ALLOW_ALL,
	} {
		if got, ok := strategy(rate, 3).GetStrategy().(*envoytype.RateLimitStrategy_BlanketRule_); !ok || got.BlanketRule != want {
			t.Errorf("%v: %v, want %v", rate, got, want)
		}
	}
}

// Each rate that is sent replaces the last one in an Envoy, which compares some fields only.
func TestEnvoysSeeThatARateChanges(t *testing.T) {
	c := mail(1000).withDefaults()
	e := &envoy{t: t, buckets: map[string]*envoyBucket{}}
	id := &rlqs.BucketId{Bucket: map[string]string{"customer": "mail"}}
	e.buckets["map[customer:mail]"] = &envoyBucket{}
	b := &bucket{id: id, given: math.NaN()}
	now := t0
	for _, rate := range []float64{1, 2, 1, 0.5, 0.25, 4, 2, 100, 50, 25, 0, 25, 0.1} {
		now = now.Add(time.Second)
		b.share = rate
		all := b.assign(now, &c)
		if len(all) != 1 {
			t.Fatalf("%v: %d assignments, want 1", rate, len(all))
		}
		e.take(now, all[0])
		got := e.buckets["map[customer:mail]"]
		if rate > 0 && math.Abs(got.rate-rate) > 0.02*rate {
			t.Errorf("%v: the Envoy uses %v", rate, got.rate)
		}
		if again := b.assign(now.Add(time.Second), &c); len(again) != 0 {
			t.Errorf("%v: sent again at once", rate)
		}
		if again := b.assign(now.Add(c.TTL/2), &c); len(again) != 1 {
			t.Errorf("%v: not sent again before it expires", rate)
		} else {
			before := *got
			if e.take(now, again[0]); rate > 0 && (got.tokens != before.tokens || got.has != before.has) {
				t.Errorf("%v: sent again, it is another bucket", rate)
			}
		}
	}
}

// A customer's share goes to its buckets by class, and adds up to no more than 1.1 of it.
func TestSplit(t *testing.T) {
	for _, row := range []struct {
		rate  float64
		least int
		wants [4]float64 // of a bucket of each class
		want  [4]float64
	}{
		{100, 0, [4]float64{1000, 0, 1000, 0}, [4]float64{0, 0, 97.5, 2.5}},
		{100, 2, [4]float64{1000, 0, 10, 0}, [4]float64{0, 0, 56.87, 43.13}},
		{1000, 0, [4]float64{0, 0, 100, 0}, [4]float64{225, 225, 325, 225}},
	} {
		c := &customer{}
		for class, w := range row.wants {
			c.buckets = append(c.buckets, &bucket{class: class, rate: w})
		}
		c.split(row.rate, row.least)
		sum := 0.
		for class, b := range c.buckets {
			sum += b.share
			if math.Abs(b.share-row.want[class]) > 0.01*row.rate {
				t.Errorf("%+v: class %d has %v", row, class, b.share)
			}
		}
		if math.Abs(sum-row.rate) > 0.001*row.rate {
			t.Errorf("%+v: all have %v", row, sum)
		}
	}
}
