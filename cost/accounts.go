package cost

import "hash/maphash"

const (
	// maxAccounts is the number of customers whose measured calls are remembered.
	maxAccounts = 1024
	// leastMeasured is how many calls of a customer are measured, each, before only some are.
	leastMeasured = 4
	// sampled is the part of the calls that is measured afterwards.
	sampled = 1. / 8
	// recency is the weight of a measured call in the mean of a customer.
	recency = 1. / 16
	// leastCalls is after how many calls a customer that is not known by name may get a place.
	leastCalls = 20
)

// An account is what the own calls of a customer were measured to cost.
type account struct {
	hash       uint64 // of the customer
	generation uint32 // of the customers that had this account, from 1 on
	calls      uint32
	measures   uint32
	recent     bool    // it had another call since the hand has passed
	mean       float64 // units
}

// A reference is an account at one time. The zero reference is none.
type reference struct{ at, generation uint32 }

// accounts has an account for each customer that called recently. A customer that loses its account starts again: its
// next call is measured, so it gains nothing, and no other customer notices.
type accounts struct {
	seed   maphash.Seed // clients cannot find names with the same hash
	places map[uint64]uint32
	all    []account
	hand   int // that looks for an account without a recent call
}

func (a *accounts) init() {
	a.seed, a.places = maphash.MakeSeed(), make(map[uint64]uint32, maxAccounts)
}

// of returns the account of a customer, until the next call of it.
func (a *accounts) of(customer string) (*account, reference) {
	hash := maphash.String(a.seed, customer)
	place, ok := a.places[hash]
	if !ok {
		place = a.open(hash)
	}
	x := &a.all[place]
	x.recent = ok // a name that comes once is the first to go
	return x, reference{place, x.generation}
}

// open makes an account for a new customer.
func (a *accounts) open(hash uint64) (place uint32) {
	if len(a.all) < maxAccounts {
		place = uint32(len(a.all))
		a.all = append(a.all, account{})
	} else {
		place = a.idle()
		delete(a.places, a.all[place].hash)
	}
	a.all[place] = account{hash: hash, generation: a.all[place].generation + 1}
	a.places[hash] = place
	return place
}

// idle returns the place of an account without a call since the hand has passed it before.
func (a *accounts) idle() (place uint32) {
	for {
		at := a.hand
		a.hand = (a.hand + 1) % len(a.all)
		if !a.all[at].recent {
			return uint32(at)
		}
		a.all[at].recent = false
	}
}

// at returns an account, nil if it now belongs to another customer.
func (a *accounts) at(r reference) *account {
	if int(r.at) >= len(a.all) || a.all[r.at].generation != r.generation {
		return nil
	}
	return &a.all[r.at]
}

// begin counts a call, and reports whether the customer has made enough of them for a place.
func (x *account) begin() (earned bool) {
	x.calls = min(x.calls+1, leastCalls)
	return x.calls == leastCalls
}

// measured takes in what a call has cost.
func (x *account) measured(units float64) {
	weight := max(1/float64(x.measures+1), recency)
	x.mean += float64(weight * (units - x.mean))
	x.measures = min(x.measures+1, 1/recency)
}
