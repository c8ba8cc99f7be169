package balance

import (
	"cmp"
	"hash/fnv"
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
// on the result: a round orders the addresses by a hash of the round and the address. An
// endpoint that comes or goes moves one endpoint from each subset to the next, so that few
// connections change.
func Subset(addresses []string, client uint64, size int) []string {
	if size <= 0 || size >= len(addresses) {
		return addresses
	}
	count := uint64(len(addresses) / size)
	round, id := client/count, client%count
	all := slices.SortedFunc(slices.Values(addresses), func(a, b string) int {
		return cmp.Or(cmp.Compare(rankOf(round, a), rankOf(round, b)), cmp.Compare(a, b))
	})
	return all[int(id)*size : int(id+1)*size]
}

// rankOf returns FNV-1a of the address, mixed with the round by the finalizer of splitmix64:
// addresses that differ in their last digit alone have unlike ranks.
func rankOf(round uint64, address string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(address))
	x := h.Sum64() + (round+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
