package reach

import (
	"net"
	"net/netip"
	"strings"
)

// Meets reports whether who connects to an endpoint from this machine reaches who listens at an address. Names other
// than localhost are not looked up.
func Meets(listening, endpoint string) bool {
	host, port, err := net.SplitHostPort(listening)
	to, toPort, bad := net.SplitHostPort(endpoint)
	if err != nil || bad != nil || port != toPort || port == "0" {
		return false
	}
	a, b := addressOf(host), addressOf(to)
	if !a.IsValid() || !b.IsValid() {
		return strings.EqualFold(host, to)
	}
	return a == b || a.IsUnspecified() && b.IsLoopback() || b.IsUnspecified() && a.IsLoopback()
}

// addressOf returns the address of a host, none for a name.
func addressOf(host string) netip.Addr {
	switch {
	case host == "":
		return netip.IPv6Unspecified()
	case strings.EqualFold(host, "localhost"):
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	a, _ := netip.ParseAddr(host) // a name is none
	return a.Unmap()
}
