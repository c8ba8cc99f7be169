package early

import "bytes"

// These are the meanings of fields that are not in [Names]. The meaning of those in Names is their
// index.
const (
	fieldHost = maxNames + iota
	fieldLength
	fieldConnection
	fieldUnusual
	fieldOther
)

// maxNames is the maximum number of names, and maxLength their maximum length in bytes.
const maxNames, maxLength = 10, 31

// Names are the names of the fields that a [Gate] reads, in upper or lower case, of at most 31
// bytes. Empty names are ignored.
type Names [maxNames]string

// A table has the fields that have a meaning, by the length of their names.
type table [maxLength + 1][]knownField

// newTable returns the table for names.
func newTable(names *Names) *table {
	fields := []knownField{
		{"Host", fieldHost}, {"Content-Length", fieldLength}, {"Connection", fieldConnection},
		{"Transfer-Encoding", fieldUnusual}, {"Upgrade", fieldUnusual}, {"Expect", fieldUnusual}, {"Trailer", fieldUnusual},
	}
	for i, name := range names {
		fields = append(fields, knownField{name, i})
	}
	t := new(table)
	for _, f := range fields {
		t[len(f.name)] = append(t[len(f.name)], f)
	}
	return t
}

type knownField struct {
	name    string
	meaning int
}

// meaningOf returns the meaning of the field with a name, in upper or lower case.
func (t *table) meaningOf(name []byte) int {
	if len(name) < len(t) {
		for i := range t[len(name)] {
			k := &t[len(name)][i]
			if string(name) == k.name || k.resembles(name) && bytes.EqualFold(name, []byte(k.name)) {
				return k.meaning
			}
		}
	}
	return fieldOther
}

// resembles compares the first and the last letter, in upper or lower case. Most names differ
// there.
func (k *knownField) resembles(name []byte) bool {
	last := len(name) - 1
	return (name[0]|' ') == (k.name[0]|' ') && (name[last]|' ') == (k.name[last]|' ')
}
