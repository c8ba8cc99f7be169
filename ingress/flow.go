package ingress

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// seed makes the hash of a caller different in each process: no client can choose a name
// with the hash of another one.
var seed = maphash.MakeSeed()

// flow returns the hash of the caller while the shedder counts callers, and else 0.
func (s shedder) flow(call *spillway.Call, from *ratelimit.Caller) uint64 {
	if !s.TellsCallersApart() {
		return 0
	}
	return flowOf(call.Customer, from)
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

// addressed returns the hash of the part of an address that a client cannot change: in IPv6,
// the /64 that each host has.
func addressed(a netip.Addr) uint64 {
	a = a.Unmap()
	b := a.As16()
	half := binary.BigEndian.Uint64(b[:8])
	if a.Is4() {
		half = binary.BigEndian.Uint64(b[8:])
	}
	return max(1, maphash.Comparable(seed, half))
}
