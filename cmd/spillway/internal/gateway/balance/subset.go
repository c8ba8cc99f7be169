package balance

import (
	"math/rand/v2"
	"slices"
)

// Subset returns the endpoints that the client with that number uses: size of them, the
// same ones each time. Clients that are numbered without gaps share all endpoints
// evenly: within a round each endpoint is in one subset, and each round has an order of
// its own. It is the algorithm of Site Reliability Engineering, chapter 20, "A Subset
// Selection Algorithm: Deterministic Subsetting". Where size is not positive, or not
// less than the number of endpoints, Subset returns all of them.
//
// The order of addresses does not matter, and all programs of this version must agree
// on the result: the shuffle is Fisher and Yates' with PCG, seeded with the round.
func Subset(addresses []string, client uint64, size int) []string {
	if size <= 0 || size >= len(addresses) {
		return addresses
	}
	all := slices.Sorted(slices.Values(addresses))
	count := uint64(len(all) / size)
	round, id := client/count, client%count
	source := rand.NewPCG(round, 0)
	for i := len(all) - 1; i > 0; i-- {
		j := int(source.Uint64() % uint64(i+1)) // the bias is 1 in 2^64/i
		all[i], all[j] = all[j], all[i]
	}
	start := int(id) * size
	return all[start : start+size]
}
