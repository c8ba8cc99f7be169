package ratelimit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Caller is what an adapter knows of a client that asks to be let in. A zero field is
// not known, and matches no exemption.
type Caller struct {
	// Addr is the address that the connection comes from.
	Addr netip.Addr
	// Identity is who the caller has proven to be. It must not come from what the
	// caller says of itself.
	Identity string
	// Application is the name that the caller's program gives itself.
	Application string
	// Unauthenticated says that the protocol demands a proof of identity and
	// that the caller has still to give it.
	Unauthenticated bool
}

// Exempt says which callers a [Limiter] lets in without a token. A caller is
// exempt if any of the fields names it. The zero Exempt matches no caller.
type Exempt struct {
	// CIDRs are networks. An IPv4 network also holds its IPv4-mapped IPv6
	// addresses.
	CIDRs []netip.Prefix
	// Identities are callers by proven identity, in full.
	Identities []string
	// Applications are prefixes of application names. A caller can claim any name:
	// use them among friends only.
	Applications []string
	// Unauthenticated exempts callers that have still to authenticate, so that
	// requests cannot crowd out the handshakes that tell friend from foe. Bound
	// those by a limiter for connections.
	Unauthenticated bool
}

// Match reports whether c is exempt. It is safe for concurrent use while
// the slices do not change, and allocates nothing.
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

// clone returns e with its own slices.
func (e Exempt) clone() Exempt {
	e.CIDRs = slices.Clone(e.CIDRs)
	e.Identities = slices.Clone(e.Identities)
	e.Applications = slices.Clone(e.Applications)
	return e
}
