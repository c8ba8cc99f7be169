package cost

import "hash/maphash"

const (
	// maxAccounts is the maximum number of customers that have an account.
	maxAccounts = 1024
	// leastMeasured is how many calls of a new customer are all measured.
	leastMeasured = 4
	// sampled is the share of the later calls that is measured.
	sampled = 1. / 8
	// recency is the least weight of a measured call in the mean of its customer, so the mean is of
	// about 16 calls.
	recency = 1. / 16
	// leastCalls is the number of calls after which a customer that is not known by name gets its
	// own key.
	leastCalls = 20
)

// An account is what the calls of one customer have cost by measurement.
type account struct {
	hash       uint64  // of the customer's name
	generation uint32  // number of customers that have had this account, this one included
	calls      uint32  // number of calls, at most leastCalls
	measures   uint32  // measured calls, at most 16
	recent     bool    // the customer has had another call since the clock hand passed
	mean       float64 // mean cost of a measured call, in units
}

// A reference names an account of a certain customer. The zero reference names none.
type reference struct{ at, generation uint32 }

// accounts has an account for each customer with recent calls. A customer that loses its account
// starts again, and its next calls are measured: it gains nothing, and no other customer is
// affected.
type accounts struct {
	seed   maphash.Seed      // clients cannot find two names with the same hash
	places map[uint64]uint32 // index in all, by hash
	all    []account
	hand   int // the clock hand: index in all where the search for an idle account goes on
}

func (a *accounts) init() {
	a.seed, a.places = maphash.MakeSeed(), make(map[uint64]uint32, maxAccounts)
}

// of returns the account of a customer, which is valid until the next call of of.
func (a *accounts) of(customer string) (*account, reference) {
	hash := maphash.String(a.seed, customer)
	place, ok := a.places[hash]
	if !ok {
		place = a.open(hash)
	}
	x := &a.all[place]
	x.recent = ok // an account with only one call is the first to be replaced
	return x, reference{place, x.generation}
}

// open makes an account for a new customer, and returns its index.
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

// idle returns the index of an account that had no call since the clock hand last passed it.
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

// at returns the account that r names, or nil if another customer has it now.
func (a *accounts) at(r reference) *account {
	if int(r.at) >= len(a.all) || a.all[r.at].generation != r.generation {
		return nil
	}
	return &a.all[r.at]
}

// begin counts a call, and reports whether the customer has now made enough calls for its own key.
func (x *account) begin() (earned bool) {
	x.calls = min(x.calls+1, leastCalls)
	return x.calls == leastCalls
}

// measured adds the cost of a call, in units, to the mean.
func (x *account) measured(units float64) {
	weight := max(1/float64(x.measures+1), recency)
	x.mean += float64(weight * (units - x.mean))
	x.measures = min(x.measures+1, 1/recency)
}
