package spillrlqs

import (
	"math"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/seed90641741/spillway"
)

// bucket returns the bucket with an id, a new one if there is a place, or else the one for all
// others.
func (t *stream) bucket(id *rlqs.BucketId) *bucket {
	key, ok := idKey(id.GetBucket())
	if b := t.buckets[key]; ok && b != nil {
		return b
	}
	cfg := t.cfg.Load()
	name := id.GetBucket()[cfg.CustomerKey]
	class := classOf(id.GetBucket()[cfg.CriticalityKey])
	_, listed := cfg.Fleet.Limits.Customers[name]
	if !ok || len(name) > maxName || !t.hasPlace(name, listed) {
		return t.others(class)
	}
	b := &bucket{id: id, key: key, class: class, listed: listed, given: math.NaN()}
	t.buckets[key] = b
	t.places[index(listed)]++
	t.add(name, listed, b)
	return b
}

// hasPlace takes a place for a bucket, if there is one.
func (t *stream) hasPlace(name string, listed bool) bool {
	cfg := t.cfg.Load()
	if t.places[index(listed)] >= cfg.MaxStreamBuckets {
		return false
	}
	if t.customers[name] == nil && !listed && t.unlisted >= cfg.Fleet.MaxUnlisted {
		return false
	}
	return t.take(listed)
}

// others returns the bucket of a class for all ids without a place.
func (t *stream) others(class int) *bucket {
	if c := t.customers[""]; c != nil {
		for _, b := range c.buckets {
			if b.id == nil && b.class == class {
				return b
			}
		}
	}
	b := &bucket{class: class, holders: make(holders)}
	t.add("", false, b)
	return b
}

// add adds a bucket to its customer.
func (t *stream) add(name string, listed bool, b *bucket) {
	c := t.customers[name]
	if c == nil {
		c = &customer{name: name, listed: listed}
		t.customers[name] = c
		t.order = append(t.order, c)
		if !listed && name != "" {
			t.unlisted++
		}
	}
	b.owner = c
	c.buckets = append(c.buckets, b)
}

func index(listed bool) int {
	if listed {
		return 1
	}
	return 0
}

// classOf returns the index of a criticality that an Envoy named.
func classOf(s string) int {
	c, err := spillway.ParseCriticality(s)
	if err != nil {
		c = spillway.Critical
	}
	return c.Index()
}

// forget abandons buckets without demand.
func (c *customer) forget(t *stream, now time.Time, m *rlqs.RateLimitQuotaResponse) {
	cfg, kept := t.cfg.Load(), c.buckets[:0]
	for _, b := range c.buckets {
		if !b.gone(now, cfg.Idle, cfg.TTL) {
			kept = append(kept, b)
			continue
		}
		if b.id != nil {
			m.BucketAction = append(m.BucketAction, abandonment(b.id))
			delete(t.buckets, b.key)
			t.places[index(b.listed)]--
			t.give(b.listed, 1)
		}
	}
	clear(c.buckets[len(kept):])
	c.buckets = kept
}
