package claims

import (
	"strings"

	"github.com/seed90641741/spillway"
)

// The limits of W3C Baggage, section 3.3.2: what is within both of them every
// participant has to pass on. A baggage beyond them may be cut or dropped as a whole.
const (
	maxBaggage        = 8192 // bytes of all values, with the commas between them
	maxBaggageMembers = 64
)

const baggageKey = "criticality"

// baggages are the values of a baggage that has no other member, by class. They are
// shared.
var baggages = func() (all [spillway.Criticalities][]string) {
	for i := range all {
		all[i] = []string{baggageKey + "=" + (spillway.Criticality(i) + spillway.Sheddable).String()}
	}
	return all
}()

// SetBaggage returns the values of a baggage with the member criticality of a class
// in front, in place of any that they have, and all else as it was. Where that
// would break a limit the member is left out: what else is in a baggage belongs to
// others. The result is values where nothing changes, and must not be changed
// otherwise.
func SetBaggage(values []string, class spillway.Criticality) []string {
	if !class.Valid() {
		return values
	}
	if len(values) == 0 {
		return baggages[class.Index()]
	}
	member := baggages[class.Index()][0]
	s := scan(values)
	switch {
	case s.bytes == 0:
		return baggages[class.Index()]
	case s.ours == 1 && s.first == member && s.members <= maxBaggageMembers:
		return values
	case s.others+1 > maxBaggageMembers || len(member)+1+s.rest > maxBaggage:
		return RemoveBaggage(values)
	}
	var b strings.Builder
	b.Grow(len(member) + 1 + s.rest)
	b.WriteString(member)
	s.copy(&b, values)
	return []string{b.String()}
}

// RemoveBaggage returns the values of a baggage without any member criticality, nil
// if nothing else is left. Without one, the result is values itself.
func RemoveBaggage(values []string) []string {
	s := scan(values)
	if s.ours == 0 {
		return values
	}
	if s.others == 0 {
		return nil
	}
	var b strings.Builder
	b.Grow(s.rest)
	s.copy(&b, values)
	return []string{b.String()}
}

// ReplaceBaggage returns what SetBaggage does if labelled, and what RemoveBaggage does if not. It
// reports whether that is another baggage.
func ReplaceBaggage(values []string, class spillway.Criticality, labelled bool) (replaced []string, changed bool) {
	if labelled {
		replaced = SetBaggage(values, class)
	} else {
		replaced = RemoveBaggage(values)
	}
	same := len(replaced) == len(values) && (len(values) == 0 || &replaced[0] == &values[0])
	return replaced, !same
}

// Put sets the values of a field of a header, or of metadata, and removes the field if values is empty.
func Put(header map[string][]string, key string, values []string) {
	if len(values) == 0 {
		delete(header, key)
	} else {
		header[key] = values
	}
}

// HasBaggage reports whether a baggage has a member criticality.
func HasBaggage(values []string) bool { return scan(values).ours > 0 }

// A baggageScan is what there is in a baggage.
type baggageScan struct {
	bytes   int // of all values
	members int // that are not empty
	ours    int // of them, named criticality
	others  int
	rest    int    // bytes of the others with a comma between them
	first   string // of ours, without spaces around it
}

func scan(values []string) (s baggageScan) {
	for _, v := range values {
		s.bytes += len(v)
		for rest, more := v, v != ""; more; {
			var member string
			member, rest, more = strings.Cut(rest, ",")
			s.add(strings.Trim(member, " \t"))
		}
	}
	return s
}

func (s *baggageScan) add(member string) {
	if member == "" {
		return
	}
	s.members++
	if !isOurs(member) {
		s.others++
		s.rest += len(member)
		if s.others > 1 {
			s.rest++
		}
		return
	}
	if s.ours++; s.ours == 1 {
		s.first = member
	}
}

// copy writes all other members after what is in b.
func (s *baggageScan) copy(b *strings.Builder, values []string) {
	for _, v := range values {
		for rest, more := v, v != ""; more; {
			var member string
			member, rest, more = strings.Cut(rest, ",")
			if member = strings.Trim(member, " \t"); member == "" || isOurs(member) {
				continue
			}
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(member)
		}
	}
}

// isOurs reports whether a member is named criticality. Keys are never encoded.
func isOurs(member string) bool {
	pair, _, _ := strings.Cut(member, ";")
	key, _, ok := strings.Cut(pair, "=")
	return ok && strings.TrimSpace(key) == baggageKey
}
