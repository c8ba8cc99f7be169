// Package claims reads what requests say of themselves in words that several
// protocols share. Where a request says several things, the one counts that gains it
// least; what is not valid says nothing. Whether any of it is believed, others decide.
package claims

import (
	"crypto/x509"
	"strings"

	"github.com/seed90641741/spillway"
)

// Fields are the values of the fields in which a request says how much it matters.
type Fields struct{ Criticality, Level, Progress, Baggage []string }

// Said is what they say.
type Said struct {
	Criticality spillway.Criticality // if Labelled
	Labelled    bool
	Level       spillway.Level    // 0: nothing
	Progress    spillway.Progress // 0 without a Level
}

// Read returns what f says. A member of the baggage counts where the field for it is absent.
func (f *Fields) Read() (s Said) {
	if len(f.Baggage) > 0 && (len(f.Criticality) == 0 || len(f.Level) == 0) {
		s.readBaggage(f.Baggage)
	}
	if len(f.Criticality) > 0 {
		s.Criticality, s.Labelled = spillway.Critical, false
		for _, text := range f.Criticality {
			s.lower(text)
		}
	}
	if len(f.Level) > 0 {
		s.Level, s.Progress = leastLevel(f.Level), leastProgress(f.Progress)
	}
	if s.Level == 0 {
		s.Progress = 0
	}
	return s
}

// Criticality returns the lowest class that is named by own, the values of the field
// for it, or if that is absent by baggage, as its member criticality.
func Criticality(own, baggage []string) (class spillway.Criticality, ok bool) {
	s := (&Fields{Criticality: own, Baggage: baggage}).Read()
	return s.Criticality, s.Labelled
}

// lower takes in what text names, if it names a class that is lower than that of s, or s names no class.
func (s *Said) lower(text string) {
	if c, names := named(text); names && (!s.Labelled || c < s.Criticality) {
		s.Criticality, s.Labelled = c, true
	}
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
