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

// The members of a baggage that are ours.
const (
	classKey    = "criticality"
	levelKey    = "level"
	progressKey = "progress"
)

// baggages are the values of a baggage that has no other members, by class, and by level: 0 for none. They are
// shared. The progress of a task is in none: a baggage is the same for all calls of a task.
var baggages = func() (all [spillway.Criticalities][spillway.Levels + 1][]string) {
	for i := range all {
		class := classKey + "=" + (spillway.Criticality(i) + spillway.Sheddable).String()
		all[i][0] = []string{class}
		for l := 1; l <= spillway.Levels; l++ {
			all[i][l] = []string{class + "," + levelKey + "=" + LevelValues[l][0]}
		}
	}
	return all
}()

// SetBaggage returns the values of a baggage with the member criticality of a class
// in front, in place of any that they have, and all else as it was. Where that
// would break a limit the member is left out: what else is in a baggage belongs to
// others. The result is values where nothing changes, and must not be changed
// otherwise.
func SetBaggage(values []string, class spillway.Criticality) []string {
	var s Said
	s.readBaggage(values)
	return setBaggage(values, class, s.Level)
}

// setBaggage is SetBaggage with the member level, too, unless level is 0.
func setBaggage(values []string, class spillway.Criticality, level spillway.Level) []string {
	if !class.Valid() {
		return values
	}
	wanted, members := baggages[class.Index()][level], 1
	if level > 0 {
		members = 2
	}
	s := scan(values)
	switch {
	case s.bytes == 0:
		return wanted
	case s.says(wanted[0], members) && s.members <= maxBaggageMembers:
		return values
	case s.others+members > maxBaggageMembers || len(wanted[0])+1+s.rest > maxBaggage:
		return RemoveBaggage(values)
	}
	var b strings.Builder
	b.Grow(len(wanted[0]) + 1 + s.rest)
	b.WriteString(wanted[0])
	s.copy(&b, values)
	return []string{b.String()}
}

// readBaggage looks at as many bytes as every participant has to pass on.
func (s *Said) readBaggage(values []string) {
	left := maxBaggage
	for _, rest := range values {
		rest = rest[:min(len(rest), left)]
		left -= len(rest)
		for more := true; more; {
			var member string
			member, rest, more = strings.Cut(rest, ",")
			s.member(member)
		}
	}
}

// member takes in what a member of a baggage says.
func (s *Said) member(member string) {
	member, _, _ = strings.Cut(member, ";")
	switch key, value, _ := strings.Cut(member, "="); strings.TrimSpace(key) {
	case classKey:
		s.lower(value)
	case levelKey:
		if l := levelIn(value); s.Level == 0 || l > 0 && l < s.Level {
			s.Level = l
		}
	case progressKey:
		if p, ok := numberIn(value, 255); ok && (s.Progress == 0 || p < int(s.Progress)) {
			s.Progress = spillway.Progress(p)
		}
	}
}

// RemoveBaggage returns the values of a baggage without any member criticality, and without members level and progress that
// say a number of ours, nil if nothing else is left. Without one, the result is values itself.
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

// ReplaceBaggage returns what SetBaggage does if labelled, with the level as another member unless that is 0, and what RemoveBaggage
// does if there is no level either. It reports whether that is another baggage.
func ReplaceBaggage(values []string, class spillway.Criticality, labelled bool, level spillway.Level) (replaced []string, changed bool) {
	switch {
	case labelled:
		replaced = setBaggage(values, class, level)
	case level > 0:
		replaced = values
	default:
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

// HasBaggage reports whether a baggage has a member that is ours.
func HasBaggage(values []string) bool { return scan(values).ours > 0 }

// A baggageScan is what there is in a baggage.
type baggageScan struct {
	bytes   int // of all values
	members int // that are not empty
	ours    int // of them
	others  int
	rest    int       // bytes of the others with a comma between them
	first   [2]string // of ours, without spaces around them
}

// says reports whether ours are exactly the members of text.
func (s *baggageScan) says(text string, members int) bool {
	class, level, _ := strings.Cut(text, ",")
	return s.ours == members && (s.first == [2]string{class, level} || s.first == [2]string{level, class})
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
	if s.ours < len(s.first) {
		s.first[s.ours] = member
	}
	s.ours++
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

// isOurs reports whether a member is named criticality, or level or progress and has such a number: others may have members of these
// names, too. Keys are never encoded.
func isOurs(member string) bool {
	pair, _, _ := strings.Cut(member, ";")
	key, value, ok := strings.Cut(pair, "=")
	switch strings.TrimSpace(key) {
	case classKey:
		return ok
	case levelKey:
		return levelIn(value) > 0
	case progressKey:
		_, number := numberIn(value, 255)
		return number
	default:
		return false
	}
}
