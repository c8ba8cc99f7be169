package ingress

import (
	"hash/fnv"
	"hash/maphash"
	"net/netip"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
)

// seed makes the hash of a caller different in each process: no client can choose a name
// with the hash of another one.
var seed = maphash.MakeSeed()

// flowAt returns the hash of the caller while a shedder counts callers, and else 0.
func (c *Core) flowAt(by shedder, call *spillway.Call, from *ratelimit.Caller) uint64 {
	if !by.TellsCallersApart() {
		return 0
	}
	if c.secret {
		return flowOf(call.Customer, from)
	}
	return sameFlow(call.Customer, from)
}

// flowOf returns a hash of the proven identity of the caller, or else of the customer, or else
// of the address; 0 if none is known.
func flowOf(customer string, from *ratelimit.Caller) uint64 {
	switch {
	case from.Identity != "":
		return named('i', from.Identity)
	case customer != "":
		return named('c', customer)
	case from.Addr.IsValid():
		return addressed(from.Addr)
	default:
		return 0
	}
}

// named returns the hash of a name of some kind, which is not 0.
func named(kind byte, name string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(kind)      // never fails
	_, _ = h.WriteString(name) // never fails
	return max(1, h.Sum64())
}

// addressed returns the hash of the part of an address that a client cannot change.
func addressed(a netip.Addr) uint64 {
	b := claims.NetworkBytes(a)
	return max(1, maphash.Bytes(seed, b[:]))
}

// sameFlow is flowOf with a hash that is the same in each process, for clients that are not
// real.
func sameFlow(customer string, from *ratelimit.Caller) uint64 {
	h := fnv.New64a()
	switch {
	case from.Identity != "":
		_, _ = h.Write([]byte("i" + from.Identity)) // never fails
	case customer != "":
		_, _ = h.Write([]byte("c" + customer)) // never fails
	case from.Addr.IsValid():
		_, _ = h.Write([]byte("a" + claims.Network(from.Addr).String())) // never fails
	default:
		return 0
	}
	return max(1, h.Sum64())
}
