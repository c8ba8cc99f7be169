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
// that is for it, or if that has none by baggage, as its member criticality.
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
	text = strings.TrimSpace(text)
	for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		if name := c.String(); len(name) == len(text) && (name == text || strings.EqualFold(name, text)) && (!ok || c < class) {
			return c, true
		}
	}
	return class, ok
}

// Identity returns the name in a certificate, which must have been verified: its
// first URI, else its first DNS name, else its common name.
func Identity(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	default:
		return c.Subject.CommonName
	}
}
