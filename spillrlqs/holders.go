package spillrlqs

import (
	"hash/maphash"
	"math"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
)

// maxHolders is how many ids without a place have a part of their bucket's share at a time.
const maxHolders = 1000

// holders are the ids without a place that divide the share of a bucket: those with an assignment that has
// not expired, by a hash of the id. An id holds its part until the assignment expires, also if it is not used
// again: otherwise clients that use a new id each time would have the share many times.
type holders map[uint64]holder

type holder struct {
	rate  float64
	until time.Time
}

var seed = maphash.MakeSeed()

// hashOf returns a hash that does not depend on the order of keys.
func hashOf(id *rlqs.BucketId) (sum uint64) {
	for key, value := range id.GetBucket() {
		sum += maphash.Comparable(seed, [2]string{key, value})
	}
	return sum
}

// divide gives each of the ids its part of share until the time. Those for which there is no place get none.
// Ids that have a part come first: new ones get what they leave.
func (h holders) divide(now, until time.Time, share float64, ids []*rlqs.BucketId) {
	for hash, holder := range h {
		if !now.Before(holder.until) {
			delete(h, hash)
		}
	}
	var known, added []uint64
	for _, id := range ids {
		hash := hashOf(id)
		switch old, ok := h[hash]; {
		case ok && old.until.Equal(until): // it is there twice
			continue
		case ok:
			known = append(known, hash)
		case len(h) < maxHolders:
			added = append(added, hash)
		default:
			continue
		}
		h[hash] = holder{until: until}
	}
	h.give(known, until, share)
	h.give(added, until, share)
}

// give gives each of some ids an equal part of share, if others have left so much.
func (h holders) give(hashes []uint64, until time.Time, share float64) {
	left := share
	for _, holder := range h {
		if !math.IsInf(left, 1) {
			left -= holder.rate
		}
	}
	part := max(0, min(share/float64(len(h)), left/float64(len(hashes))))
	for _, hash := range hashes {
		h[hash] = holder{rate: part, until: until}
	}
}
