package requests

import (
	"hash/fnv"
	"hash/maphash"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// flowAt returns the hash of the caller while a shedder counts callers, and 0 otherwise.
func flowAt(by *shed.Shedder, call *spillway.Call, from *ratelimit.Caller, secret bool) uint64 {
	if !by.TellsCallersApart() {
		return 0
	}
	return flowOf(call.Customer, from, secret)
}

// flowOf returns a hash of the proven identity of the caller, or else of the customer, or else of
// the network of the address. It returns 0 if none of them is known.
func flowOf(customer string, from *ratelimit.Caller, secret bool) uint64 {
	switch {
	case from.Identity != "":
		return identities.hash(from.Identity, secret)
	case customer != "":
		return customers.hash(customer, secret)
	case !from.Addr.IsValid():
		return 0
	}
	b := claims.NetworkBytes(from.Addr)
	if secret {
		return max(1, maphash.Bytes(networks.seed, b[:])) // as hash, without a string
	}
	return networks.hash(string(b[:]), false)
}

// A kind is something by which a caller is known. Names of different kinds have different hashes.
type kind struct {
	letter string
	seed   maphash.Seed // different in each process: no client can choose a name with the hash of another one
}

var (
	identities = kind{"i", maphash.MakeSeed()}
	customers  = kind{"c", maphash.MakeSeed()}
	networks   = kind{"a", maphash.MakeSeed()}
)

// hash returns a hash of a name, which is not 0. If it is not secret, as for simulated clients,
// it is the same in each process.
func (k *kind) hash(name string, secret bool) uint64 {
	if secret {
		return max(1, maphash.String(k.seed, name))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(k.letter + name)) // never fails
	return max(1, h.Sum64())
}
