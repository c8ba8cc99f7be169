package ratelimit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Caller is what an adapter knows of a client that asks for admission. A zero field is unknown,
// and matches no exemption.
type Caller struct {
	// Addr is the address from which the connection comes.
	Addr netip.Addr
	// Identity is the authenticated identity of the caller, never an unverified claim.
	Identity string
	// Application is the name that the caller's program claims for itself.
	Application string
	// Unauthenticated means that the protocol requires authentication, and that the caller has not
	// completed it yet.
	Unauthenticated bool
}

// Exempt says which callers a [Limiter] admits without a token. A caller is exempt if any of the
// fields matches it. The zero Exempt matches no caller.
type Exempt struct {
	// CIDRs are networks. An IPv4 network also contains its IPv4-mapped IPv6 addresses.
	CIDRs []netip.Prefix
	// Identities are authenticated identities of callers, matched as a whole.
	Identities []string
	// Applications are prefixes of application names. Any caller can claim any name, so use them at
	// an internal boundary only.
	Applications []string
	// Unauthenticated exempts callers that have not authenticated yet, so that requests cannot
	// crowd out the handshakes of trusted callers. Limit these callers with a limiter for
	// connections.
	Unauthenticated bool
}

// Match reports whether c is exempt. It is safe for concurrent use while the slices do not change.
// It allocates nothing.
func (e Exempt) Match(c Caller) bool {
	return e.Unauthenticated && c.Unauthenticated ||
		e.hasAddr(c.Addr) ||
		c.Identity != "" && slices.Contains(e.Identities, c.Identity) ||
		e.hasApplication(c.Application)
}

func (e Exempt) hasAddr(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range e.CIDRs {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (e Exempt) hasApplication(name string) bool {
	for _, prefix := range e.Applications {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (e Exempt) validate() error {
	for i, p := range e.CIDRs {
		if !p.IsValid() {
			return invalid.Field("ratelimit", fmt.Sprintf("Exempt.CIDRs[%d]", i), p, "a network such as 10.0.0.0/8")
		}
		if p.Addr().Is4In6() {
			return invalid.Field("ratelimit", fmt.Sprintf("Exempt.CIDRs[%d]", i), p, "written as an IPv4 network")
		}
	}
	if i := slices.Index(e.Identities, ""); i >= 0 {
		return invalid.Field("ratelimit", fmt.Sprintf("Exempt.Identities[%d]", i), "", "the name of a caller")
	}
	if i := slices.Index(e.Applications, ""); i >= 0 {
		return invalid.Field("ratelimit", fmt.Sprintf("Exempt.Applications[%d]", i), "", "a prefix that not every name has")
	}
	return nil
}

// clone returns a copy of e that shares no slices with it.
func (e Exempt) clone() Exempt {
	e.CIDRs = slices.Clone(e.CIDRs)
	e.Identities = slices.Clone(e.Identities)
	e.Applications = slices.Clone(e.Applications)
	return e
}
