package spillrlqs

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

const (
	maxKeys  = 32      // of an id that is remembered
	maxBytes = 4096    // of these keys and their values
	maxCalls = 1 << 30 // in one report: more is not counted
	late     = 3       // times the usual time between reports, after which no use is assumed
	maxName  = 255     // of a customer, as in quota/fleet
	maxID    = 1 << 16 // bytes of an id that is answered at all
)

// A bucket is one of an Envoy's, or stands in for all of one class that have no place.
type bucket struct {
	id       *rlqs.BucketId // nil for the bucket of all ids without a place
	key      string
	owner    *customer
	listed   bool // when it got its place
	class    int
	pending  []*rlqs.BucketId // without a place, and to be answered
	holders  holders          // of these, and of earlier ones
	reported time.Time        // when the last report came
	period   time.Duration    // from the report before to the last one
	counted  time.Time        // the last report whose calls are in rate
	busy     time.Time        // when a report last had calls
	calls    float64          // since counted
	allowed  float64          // of these
	assumed  float64          // cost that was counted as used since then, without a report
	rate     float64          // calls per second
	uses     float64          // of these, allowed
	share    float64          // calls per second that it may use now
	given    float64          // that was sent; NaN before the first
	sent     time.Time
	tokens   *envoytype.TokenBucket // that was sent, or nil
}

// customer is a customer's buckets in one stream.
type customer struct {
	name    string
	listed  bool // when it came
	buckets []*bucket
	grant   quota.Grant // the last one
	calls   classCalls  // since it came
}

// idKey returns an id as text that is the same for equal ids, or false if the id has no
// place in memory.
func idKey(id map[string]string) (string, bool) {
	if len(id) > maxKeys {
		return "", false
	}
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(id)) {
		for _, s := range [2]string{key, id[key]} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
		if len(b) > maxBytes {
			return "", false
		}
	}
	return string(b), true
}

// report takes in what an Envoy counted since its last report, and returns what of it counts.
func (b *bucket) report(now time.Time, allowed, denied uint64, interval time.Duration) quota.ClassStats {
	if b.counted.IsZero() {
		b.counted, b.busy = now.Add(-interval), now // when it began is unknown
	}
	if !b.reported.IsZero() {
		b.period = now.Sub(b.reported)
	}
	counted := quota.ClassStats{AdmittedTotal: min(allowed, maxCalls), RejectedTotal: min(denied, maxCalls)}
	a, d := float64(counted.AdmittedTotal), float64(counted.RejectedTotal)
	b.reported = now
	b.calls += a + d
	b.allowed += a
	if a+d > 0 {
		b.busy = now
	}
	return counted
}

// demand returns what is wanted per second, and the cost that was used since the last
// demand, dt ago. Between reports it assumes the last use, and corrects that with the next.
func (b *bucket) demand(now time.Time, dt, interval time.Duration) (wants, used float64) {
	if b.reported.After(b.counted) {
		over := max(b.reported.Sub(b.counted), interval/4).Seconds()
		b.rate, b.uses = b.calls/over, b.allowed/over
		used = b.allowed - b.assumed
		b.calls, b.allowed, b.assumed, b.counted = 0, 0, 0, b.reported
	}
	if now.Sub(b.reported) > late*max(interval, b.period) { // Envoys may report less often than that
		b.rate, b.uses = 0, 0
	}
	since := min(dt, now.Sub(b.reported)).Seconds()
	b.assumed += float64(b.uses * since)
	return b.rate, used + float64(b.uses*since)
}

// gone reports whether a bucket is to be abandoned: it had no calls for long, or the Envoy
// does not report it any more. One that ids without a place share stays as long as they hold parts of it.
func (b *bucket) gone(now time.Time, idle, ttl time.Duration) bool {
	if b.id == nil {
		return now.Sub(b.reported) > max(idle, 2*ttl)
	}
	return now.Sub(b.busy) > idle || now.Sub(b.reported) > max(ttl, idle/2)
}

// need is what a bucket needs for calls that arrive independently of one another: the
// headroom that quota/fleet grants to a task.
func need(rate float64) float64 { return float64(1.1*rate) + float64(1.5*math.Sqrt(rate)) }

// split divides the rate of a customer among its buckets, by class from the top. What is
// left is divided equally. Each class that is admitted has a tenth of an equal part, for its
// first calls. Without a limit there is nothing to divide.
func (c *customer) split(rate float64, least int) {
	if math.IsInf(rate, 1) {
		for _, b := range c.buckets {
			b.share = rate
		}
		return
	}
	left, first := rate, 0.1*rate/float64(len(c.buckets))
	for class := spillway.Criticalities - 1; class >= 0; class-- {
		sum := 0.
		for _, b := range c.buckets {
			if b.class == class {
				b.share = max(need(b.rate), first)
				sum += b.share
			}
		}
		part := 1.
		if class < least {
			part = 0
		} else if sum > left {
			part = left / sum
		}
		for _, b := range c.buckets {
			if b.class == class {
				b.share *= part
			}
		}
		left -= sum * part
	}
	admitted := 0
	for _, b := range c.buckets {
		if b.class >= least {
			admitted++
		}
	}
	for _, b := range c.buckets {
		if b.class >= least {
			b.share += max(0, left) / float64(admitted)
		}
	}
}
