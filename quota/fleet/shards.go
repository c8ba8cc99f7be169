package fleet

import (
	"time"

	"github.com/seed90641741/spillway/quota"
)

// Shards is an allocator for more customers than one leader or one board can serve. Each customer
// belongs to one of several Fleets, by the hash of its name, and each Fleet has its own board. They
// do not share a capacity, but Limits.UnlistedTotal is one limit for all of them. Shards must not
// be empty, and must have the same length in all tasks.
type Shards []*Fleet

// Known implements [quota.Allocator].
func (s Shards) Known(customer string) bool { return s.of(customer).Known(customer) }

// Lease implements [quota.Allocator].
func (s Shards) Lease(now time.Time, d quota.Demand) quota.Grant {
	return s.of(d.Customer).Lease(now, d)
}

// LeaseUnlisted implements [quota.UnlistedAllocator]. The limit of all unlisted customers together
// belongs to one Fleet, like the limit of a customer.
func (s Shards) LeaseUnlisted(now time.Time, d quota.Demand) quota.Grant {
	return s.of(allUnlisted).LeaseUnlisted(now, d)
}

// of returns the Fleet to which a customer belongs.
func (s Shards) of(customer string) *Fleet {
	hash := uint32(2166136261) // FNV-1a, the same in all tasks
	for i := range len(customer) {
		hash = (hash ^ uint32(customer[i])) * 16777619
	}
	return s[hash%uint32(len(s))]
}

var (
	_ quota.UnlistedAllocator = (*Fleet)(nil)
	_ quota.UnlistedAllocator = Shards(nil)
)
