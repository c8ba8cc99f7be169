package claims

import (
	"strconv"
	"strings"
)

// Names are the names of [Fields] on a wire, as the keys of its headers or metadata.
type Names struct{ Criticality, Level, Progress, Baggage string }

// Of returns the fields in md.
func (n *Names) Of(md map[string][]string) Fields {
	return Fields{Criticality: md[n.Criticality], Level: md[n.Level], Progress: md[n.Progress], Baggage: md[n.Baggage]}
}

// Put sets the fields in md, and removes those without a value.
func (n *Names) Put(md map[string][]string, f *Fields) {
	Put(md, n.Criticality, f.Criticality)
	Put(md, n.Level, f.Level)
	Put(md, n.Progress, f.Progress)
	Put(md, n.Baggage, f.Baggage)
}

// Attempt returns the attempt number, from 0, that values of grpc-previous-rpc-attempts name. The highest one counts.
func Attempt(values []string) (n int) {
	for _, v := range values {
		if i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32); err == nil {
			n = max(n, int(i))
		}
	}
	return n
}
