package quota

import (
	"time"

	"github.com/seed90641741/spillway"
)

// An Allocator decides how much each customer may use. A [Quota] asks it when a
// customer comes for the first time, and again with the first call after a lease
// has ended.
//
// An Allocator is called on the path of a call, under a lock: it must answer at once, from its
// own state, and must not call the Quota. One that asks a service answers with the last values
// that it received and refreshes them in the background; when the service is unreachable for
// too long, it grants what is safe without it. It must be safe for concurrent use.
type Allocator interface {
	// Known reports whether the Allocator has a limit for this customer, apart from the
	// default for unlisted customers. Known customers are never forgotten, so their number
	// must be bounded.
	Known(customer string) bool
	// Lease grants the customer a rate for a time. The customer "" is all those
	// that share a bucket.
	Lease(now time.Time, d Demand) Grant
}

// An UnlistedAllocator also bounds what all unlisted customers of a process use together. With
// buckets of their own alone, any number of customers that come seldom would each have a call.
type UnlistedAllocator interface {
	Allocator
	// LeaseUnlisted grants a rate for a time to all customers together that are not Known, in
	// addition to the Grant of each. The name in d is "". Rate +Inf sets no bound; Unlisted has no
	// effect.
	LeaseUnlisted(now time.Time, d Demand) Grant
}

// Demand says what a customer would use.
type Demand struct {
	// Customer is its name, which the Allocator may keep.
	Customer string
	// Wants is the cost per second of all calls of the customer since the last lease. Rejected
	// calls count with Config.Cost. Zero for a new customer.
	Wants float64
	// Has is the Rate of the last Grant. Zero for a newcomer.
	Has float64
	// Offered is the cost, since the last lease, of all calls of each criticality,
	// rejected calls included, by [spillway.Criticality.Index]. Charges that belong
	// to no call count as CRITICAL_PLUS. Unlike Wants it is a sum, not a rate.
	Offered [spillway.Criticalities]float64
	// Used is the cost that was charged since the last lease. It is negative if
	// more was given back than charged.
	Used float64
	// Elapsed is the time since the last lease. Zero if no time has passed; Offered
	// and Used are then zero too, and part of the next Demand.
	Elapsed time.Duration
}

// A Grant is the lease of a rate. The zero Grant rejects everything.
type Grant struct {
	// Rate is how much cost the customer may use per second, in the long run.
	// What is not above zero rejects everything; +Inf is no limit.
	Rate float64
	// Shares is, for each criticality by [spillway.Criticality.Index], the share
	// of Rate that it and all lower ones together may use. What is not above zero
	// means that they have no limit of their own. The last is of no effect: all
	// together may use Rate.
	Shares [spillway.Criticalities]float64
	// LeastClass is the lowest criticality, by [spillway.Criticality.Index], that
	// is admitted. Lower ones are rejected even if the bucket is full, for example
	// because a higher class is rejected in another task. Zero admits all.
	LeastClass int
	// LeastDepth is the cost that the bucket holds at least, where
	// Config.BurstSeconds at a low Rate would hold less. It must be finite; what is
	// not above zero has no effect.
	LeastDepth float64
	// Unlisted means that the Allocator has no rate for this customer apart from others:
	// it shares the bucket of the customer "", whose Grant counts. Rate, Shares, LeastClass
	// and LeastDepth have no effect. It is ignored in the Grant of the customer "".
	Unlisted bool
	// Part says that Rate is what this process may use of a rate that several processes share.
	// Part, Limit and Setting change the text of rejections and CustomerStats only.
	Part bool
	// Limit is the limit of the customer, if Rate is a part of it or less for another reason. Zero
	// means Rate.
	Limit float64
	// Setting names the limit that makes Rate less than the own limit of the customer, in all
	// processes: [UnlistedTotal], [Capacity], or "" for none.
	Setting string
	// Until is when the lease ends. The grant is used up to the first call after
	// that, which asks again, and for a year at most. With LeastDepth, the time between the end of
	// the lease and that call refills the bucket at the next Rate. Where Until has passed
	// already, each call asks.
	Until time.Time
}
