package spillsql

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"strings"

	"github.com/seed90641741/spillway/egress"
)

const (
	// maxRoute is the longest text that names a route as it is. Above it, the beginning and a
	// hash do, so that what the throttle remembers stays small.
	maxRoute = 256
	// maxRead is how much of a text is read, so that a long list of values costs no time.
	// Statements that differ only after it are one route.
	maxRead = 4096
)

// A statement is the text of a statement, which names its route: where the database does not
// accept one statement, for lack of memory or as its table is locked, others are not throttled.
type statement string

// route returns what names the route of a call, or nil where its key does.
func (o *operation) route() egress.Router {
	if o.text == "" {
		return nil
	}
	return o
}

// Route implements [egress.Router].
func (o *operation) Route() string { return statement(o.text).Route() }

// Route implements [egress.Router]. It is the text with ? in place of values, so that
// statements which differ in values only are one route.
func (s statement) Route() string {
	name := withoutValues(string(s[:min(len(s), maxRead)]))
	if len(name) <= maxRoute {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return fmt.Sprintf("%s... %016x", strings.ToValidUTF8(name[:maxRoute], ""), h.Sum64())
}

// RouteHash implements [throttle.Hasher].
func (o *operation) RouteHash(seed maphash.Seed) uint64 { return statement(o.text).RouteHash(seed) }

// RouteHash implements [throttle.Hasher]. It allocates nothing for texts of usual length.
func (s statement) RouteHash(seed maphash.Seed) uint64 {
	var buffer [2 * maxRoute]byte
	return maphash.Bytes(seed, appendRoute(buffer[:0], string(s[:min(len(s), maxRead)])))
}

// withoutValues returns text with ? in place of each number, string and list of them.
func withoutValues(text string) string { return string(appendRoute(nil, text)) }

// appendRoute appends what withoutValues returns.
func appendRoute(name []byte, text string) []byte {
	for i := 0; i < len(text); {
		end := valueEnd(text, i)
		if end == i {
			name = append(name, text[i])
			i++
			continue
		}
		if list := bytes.TrimRight(name, ", "); bytes.HasSuffix(list, []byte{'?'}) {
			name = list
		} else {
			name = append(name, '?')
		}
		i = end
	}
	return name
}

// valueEnd returns the end of the value that begins at text[i], or i if none does.
func valueEnd(text string, i int) int {
	switch {
	case text[i] == '\'':
		if n := strings.IndexByte(text[i+1:], '\''); n >= 0 {
			return i + n + 2
		}
		return len(text)
	case !digit(text[i]) || i > 0 && word(text[i-1]):
		return i
	}
	for i < len(text) && (word(text[i]) || text[i] == '.') {
		i++
	}
	return i
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// word reports whether c may be part of a name.
func word(c byte) bool {
	return digit(c) || c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
