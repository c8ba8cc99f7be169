// Package claims reads what requests say of themselves in words that several
// protocols share. Where a request says several things, the one counts that gains it
// least; what is not valid says nothing. Whether any of it is believed, others decide.
package claims

import (
	"crypto/x509"
	"strings"

	"github.com/seed90641741/spillway"
)

// Criticality returns the lowest class that is named by own, the values of the field
// for it, or if that is absent by baggage, as its member criticality.
func Criticality(own, baggage []string) (class spillway.Criticality, ok bool) {
	if len(own) == 0 {
		return ofBaggage(baggage)
	}
	for _, text := range own {
		class, ok = lower(class, ok, text)
	}
	return class, ok
}

// ofBaggage looks at as many bytes as every participant has to pass on.
func ofBaggage(values []string) (class spillway.Criticality, ok bool) {
	left := maxBaggage
	for _, rest := range values {
		rest = rest[:min(len(rest), left)]
		left -= len(rest)
		for more := true; more; {
			var member string
			member, rest, more = strings.Cut(rest, ",")
			member, _, _ = strings.Cut(member, ";")
			if key, value, _ := strings.Cut(member, "="); strings.TrimSpace(key) == baggageKey {
				class, ok = lower(class, ok, value)
			}
		}
	}
	return class, ok
}

// lower returns the lower one of class, if that is any, and what text names, if it
// names one.
func lower(class spillway.Criticality, ok bool, text string) (spillway.Criticality, bool) {
	if c, names := named(text); names && (!ok || c < class) {
		return c, true
	}
	return class, ok
}

// named returns the class that text names. Most texts are exactly a name.
func named(text string) (c spillway.Criticality, ok bool) {
	switch text {
	case "SHEDDABLE":
		return spillway.Sheddable, true
	case "SHEDDABLE_PLUS":
		return spillway.SheddablePlus, true
	case "CRITICAL":
		return spillway.Critical, true
	case "CRITICAL_PLUS":
		return spillway.CriticalPlus, true
	}
	text = strings.TrimSpace(text)
	for c = spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		if len(text) == len(c.String()) && strings.EqualFold(text, c.String()) {
			return c, true
		}
	}
	return spillway.Critical, false
}

// Identity returns the name in a certificate, which must have been verified, with its
// type: "uri:" and its only URI, else "dns:" and its first DNS name, else "cn:" and its
// common name. So a name of one type never passes for one of another. A certificate with
// several URIs has no identity, as SPIFFE demands of an X.509-SVID.
func Identity(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 1:
		return ""
	case len(c.URIs) == 1:
		return typeURI + c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return typeDNS + c.DNSNames[0]
	case c.Subject.CommonName != "":
		return typeCN + c.Subject.CommonName
	default:
		return ""
	}
}

// The types of names.
const (
	typeURI = "uri:"
	typeDNS = "dns:"
	typeCN  = "cn:"
)

// IsIdentity reports whether a name is one that [Identity] could return.
func IsIdentity(name string) bool {
	for _, prefix := range [...]string{typeURI, typeDNS, typeCN} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest != ""
		}
	}
	return false
}
