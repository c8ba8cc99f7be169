package claims

import "net/netip"

// Network returns the part of an address that a client cannot change by itself: all of an
// IPv4 address, and the /64 of an IPv6 address, because one host has all of it. It is the
// zero Prefix for the zero Addr.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails for the zero Addr only
	return p
}

// NetworkBytes returns the 16 bytes of the address of [Network], which is quicker.
func NetworkBytes(a netip.Addr) [16]byte {
	b := a.As16()
	if !a.Is4() && !a.Is4In6() {
		clear(b[8:])
	}
	return b
}
