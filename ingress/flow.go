package ingress

import (
	"hash/fnv"
	"hash/maphash"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
)

// flowAt returns the hash of the caller while a shedder counts callers, and else 0.
func (c *Core) flowAt(by shedder, call *spillway.Call, from *ratelimit.Caller) uint64 {
	if !by.TellsCallersApart() {
		return 0
	}
	return flowOf(call.Customer, from, c.secret)
}

// seeds are those of identities, customers and networks. They differ in each process: no client can choose a name with
// the hash of another one.
var seeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}

// flowOf returns a hash of the proven identity of the caller, or else of the customer, or else
// of the address; 0 if none is known. If it is not secret, as for clients that are not real, it is the
// same in each process.
func flowOf(customer string, from *ratelimit.Caller, secret bool) uint64 {
	var kind int
	var name string
	switch {
	case from.Identity != "":
		kind, name = 0, from.Identity
	case customer != "":
		kind, name = 1, customer
	case !from.Addr.IsValid():
		return 0
	default:
		b := claims.NetworkBytes(from.Addr)
		if secret {
			return max(1, maphash.Bytes(seeds[2], b[:])) // without a string
		}
		kind, name = 2, string(b[:])
	}
	if secret {
		return max(1, maphash.String(seeds[kind], name))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte("ica"[kind:kind+1] + name)) // never fails
	return max(1, h.Sum64())
}
