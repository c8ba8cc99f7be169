package early

import (
	"bytes"
	"net/http"
)

// framing is where the parts of a request are, in bytes from its start.
type framing struct {
	requestLine

	known          *table
	head           int // length of the head, with the empty line
	body           int64
	hosts, lengths int            // number of Host and of Content-Length fields
	repeats        bool           // a field in Names comes more than once
	spans          [maxNames]span // values of the fields in Names
}

// requestLine is where the parts of the first line end.
type requestLine struct{ method, target, line int }

// span is where the value of a field is, after the request line. The zero span means no such field.
type span struct{ from, to int }

// frame finds the end of the request at the start of b. It is stricter than net/http and RFC 9112.
// If ok is true, the head is complete, net/http reads it as the same single request and keeps the
// connection, and nothing in it is unusual.
func frame(known *table, b []byte) (f framing, ok bool) {
	f.known = known
	ok = f.requestLine.read(b) && f.fields(b[f.line:])
	return f, ok
}

// owes returns how many bytes of the request come after b. It is negative if b has more than the
// request.
func (f *framing) owes(b []byte) int64 { return f.body - int64(len(b)-f.head) }

// fields reads all fields, and the empty line after them. It reports whether they are usual.
func (f *framing) fields(b []byte) bool {
	for at := 0; at >= 0; at = f.field(b, at) {
		if startsLine(b[at:]) {
			f.head = f.line + at + len(crlf)
			return f.hosts == 1
		}
	}
	return false
}

const crlf = "\r\n"

// startsLine reports whether b begins with CRLF.
func startsLine(b []byte) bool { return len(b) >= len(crlf) && b[0] == crlf[0] && b[1] == crlf[1] }

// read reads a line like "GET /path HTTP/1.1", and reports whether it is usual.
func (l *requestLine) read(b []byte) bool {
	const version = " HTTP/1.1" + crlf
	l.method = methodBytes.span(b)
	target := l.method + 1
	if l.method == 0 || target >= len(b) || b[l.method] != ' ' || b[target] != '/' || string(b[:l.method]) == http.MethodConnect {
		return false
	}
	l.target = target + targetBytes.span(b[target:])
	l.line = l.target + len(version)
	return l.line <= len(b) && string(b[l.target:l.line]) == version
}

// field reads the line like "Name: value" at b[at]. It returns where the next line begins, or a
// negative number if the line is not usual.
func (f *framing) field(b []byte, at int) (next int) {
	colon := at + nameBytes.span(b[at:])
	if colon == at || colon >= len(b) || b[colon] != ':' {
		return -1
	}
	from := colon + 1
	for from < len(b) && isBlank(b[from]) {
		from++
	}
	to := from + valueSpan(b[from:])
	if !startsLine(b[to:]) {
		return -1
	}
	next = to + len(crlf)
	for to > from && isBlank(b[to-1]) {
		to--
	}
	if !f.meaning(b, b[at:colon], span{from, to}) {
		return -1
	}
	return next
}

// meaning records what a field says about the request, and reports whether that is usual.
func (f *framing) meaning(b, name []byte, value span) bool {
	text := b[value.from:value.to]
	switch meaning := f.known.meaningOf(name); meaning {
	case fieldOther:
		return true
	case fieldHost:
		f.hosts++
		return plainHost(text)
	case fieldLength:
		f.lengths++
		return f.lengths == 1 && f.length(text)
	case fieldConnection:
		return bytes.EqualFold(text, fieldKeepAlive)
	case fieldUnusual:
		return false
	default:
		f.repeats = f.repeats || f.spans[meaning] != span{}
		f.spans[meaning] = value
		return true
	}
}

var fieldKeepAlive = []byte("keep-alive")

// length reads the digits of a Content-Length, at most 15, and reports whether it is valid.
func (f *framing) length(digits []byte) bool {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
		f.body = f.body*10 + int64(c-'0')
	}
	return len(digits) >= 1 && len(digits) <= 15
}

func plainHost(host []byte) bool { return len(host) > 0 && hostBytes.span(host) == len(host) }
