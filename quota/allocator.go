package quota

import (
	"time"

	"github.com/seed90641741/spillway"
)

// An Allocator decides how much each customer may use. A [Quota] asks it with the first call of a
// customer, and again with the first call after each lease has ended.
//
// An Allocator is called on the path of a call, under a lock: it must answer at once, from its own
// state, and must not call the Quota. An Allocator that asks a service answers with the last values
// that it received, and refreshes them in the background. If the service is unreachable for too
// long, it grants what is safe without it. An Allocator must be safe for concurrent use.
type Allocator interface {
	// Known reports whether the Allocator has a limit for this customer, apart from the default
	// limit for unlisted customers. Known customers are never forgotten, so their number must be
	// bounded.
	Known(customer string) bool
	// Lease grants a customer a rate for a time. The customer "" means all customers that share a
	// bucket.
	Lease(now time.Time, d Demand) Grant
}

// An UnlistedAllocator also limits what all unlisted customers of a process use together. Without
// it, each customer's own bucket admits a first call, so any number of rare customers would be
// admitted.
type UnlistedAllocator interface {
	Allocator
	// LeaseUnlisted grants a rate for a time to all customers together that are not Known, in
	// addition to the Grant of each. d.Customer is "". Rate +Inf means no limit; Unlisted has no
	// effect.
	LeaseUnlisted(now time.Time, d Demand) Grant
}

// Demand is what a customer asks for.
type Demand struct {
	// Customer is the name of the customer, which the Allocator may keep.
	Customer string
	// Wants is the cost per second of all calls since the last lease. A rejected call counts with
	// Config.Cost, or with the mean cost of admitted calls if that is more. Zero for a new
	// customer.
	Wants float64
	// Has is the Rate of the last Grant, in cost per second. Zero for a new customer.
	Has float64
	// Offered is the cost, since the last lease, of all calls of each criticality, rejected calls
	// included, by [spillway.Criticality.Index]. Charges that belong to no call count as
	// CRITICAL_PLUS. Unlike Wants it is a sum, not a rate.
	Offered [spillway.Criticalities]float64
	// Used is the cost that was charged since the last lease. It is negative if more was given back
	// than charged.
	Used float64
	// Elapsed is the time since the last lease. If it is zero, Offered and Used are zero, too, and
	// will be part of the next Demand.
	Elapsed time.Duration
}

// A Grant is the lease of a rate. The zero Grant rejects everything.
type Grant struct {
	// Rate is the cost per second that the customer may use in the long run. Zero and less reject
	// everything; +Inf means no limit.
	Rate float64
	// Shares is, for each criticality by [spillway.Criticality.Index], the share of Rate that it
	// and all lower ones together may use, 0 to 1. Zero and less mean no separate limit. The last
	// one has no effect: all classes together may use Rate.
	Shares [spillway.Criticalities]float64
	// LeastClass is the lowest criticality, by [spillway.Criticality.Index], that is admitted.
	// Lower ones are rejected even if the bucket is full, for example because a higher class is
	// rejected in another task. Zero admits all.
	LeastClass int
	// LeastDepth is the least depth of the bucket, as a cost. It matters if Config.BurstSeconds at
	// a low Rate would be less. It must be finite; zero and less have no effect.
	LeastDepth float64
	// Unlisted means that the Allocator has no separate rate for this customer. The customer then
	// shares the bucket of the customer "", whose Grant counts; Rate, Shares, LeastClass and
	// LeastDepth have no effect. In the Grant of the customer "", Unlisted is ignored.
	Unlisted bool
	// Part means that Rate is this process's part of a rate that several processes share. Part,
	// Limit and Setting change only the text of rejections, and CustomerStats.
	Part bool
	// Limit is the limit of the customer, in cost per second, if Rate is less: a part of it, or
	// reduced for another reason. Zero means Rate.
	Limit float64
	// Setting names the limit that makes Rate less than the customer's own limit, over all
	// processes: [UnlistedTotal], [Capacity], or "" for none.
	Setting string
	// Until is when the lease ends. The first call after that asks for a new lease; a lease lasts
	// for a year at most. With LeastDepth, the bucket refills at the next Rate between the end of
	// the lease and that call. If Until has already passed, each call asks.
	Until time.Time
}
