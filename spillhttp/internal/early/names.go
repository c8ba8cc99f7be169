package early

import "bytes"

// What a field means here: its place in [Names], or one of these.
const (
	fieldHost = maxNames + iota
	fieldLength
	fieldConnection
	fieldUnusual
	fieldOther
)

// maxNames is how many names there can be, and maxLength how long they can be, in bytes.
const maxNames, maxLength = 10, 31

// Names are the names of the fields that a [Gate] reads, in any case, of at most 31 bytes. An empty name is that of none.
type Names [maxNames]string

// A table has the fields that mean something here, by the length of their names.
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

// meaningOf returns what the field with that name means, whatever the case of its letters.
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

// resembles compares the first letter and the last, whatever their case: most names differ there.
func (k *knownField) resembles(name []byte) bool {
	last := len(name) - 1
	return (name[0]|' ') == (k.name[0]|' ') && (name[last]|' ') == (k.name[last]|' ')
}
