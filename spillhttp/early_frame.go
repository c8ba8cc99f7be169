package spillhttp

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net/http"
)

// framing says where the parts of a request are, in bytes.
type framing struct {
	requestLine

	head           int // length of the head, with the empty line
	body           int64
	hosts, lengths int              // how many there were
	repeats        bool             // a claim comes more than once
	spans          [claimKinds]span // of the claims
}

// requestLine says where the parts of the first line end.
type requestLine struct{ method, target, line int }

// span is where the value of a field is, after the request line; the zero span is that of none.
type span struct{ from, to int }

// frame finds the end of the request that b begins with. It is stricter than
// net/http, and than RFC 9112: ok means that the head is complete, that net/http
// reads it as the same one request and keeps the connection, and that nothing is
// unusual about it.
func frame(b []byte) (f framing, ok bool) {
	ok = f.requestLine.read(b) && f.fields(b[f.line:])
	return f, ok
}

// owes returns how many bytes of the request are still to come after b; below zero, more than the request has come.
func (f *framing) owes(b []byte) int64 { return f.body - int64(len(b)-f.head) }

// fields takes in all fields, and the empty line behind them.
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

// startsLine reports whether b begins with the end of a line.
func startsLine(b []byte) bool { return len(b) >= len(crlf) && b[0] == crlf[0] && b[1] == crlf[1] }

// span returns how many bytes at the start of b are in the set.
func (set *byteSet) span(b []byte) int {
	for i, c := range b {
		if !set[c] {
			return i
		}
	}
	return len(b)
}

// read takes in a line like "GET /path HTTP/1.1".
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

// field takes in the line like "Name: value" at b[at], and returns where the next begins,
// or a negative number.
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

// valueSpan returns how many bytes at the start of b can be part of a value. It looks at eight
// at once, up to the end of the line.
func valueSpan(b []byte) (n int) {
	for ; len(b)-n >= 8; n += 8 {
		if c := controls(binary.LittleEndian.Uint64(b[n:])); c != 0 {
			if end := n + bits.TrailingZeros64(c)/8; b[end] == crlf[0] {
				return end
			}
			break // a tab, perhaps
		}
	}
	return n + valueBytes.span(b[n:])
}

// controls returns a word whose lowest set bit is in the byte that is the first control
// character of eight.
func controls(eight uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	del := eight ^ 0x7f*each
	return ((eight-' '*each)&^eight | (del-each)&^del) & high
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// What a field means here: a claim, or one of these.
const (
	fieldHost = claimKinds + iota
	fieldLength
	fieldConnection
	fieldUnusual
	fieldOther
)

// known are the fields that mean something here, by the length of their names.
var known = func() (table [32][]knownField) {
	fields := []knownField{
		{"Host", fieldHost}, {"Content-Length", fieldLength}, {"Connection", fieldConnection},
		{"Transfer-Encoding", fieldUnusual}, {"Upgrade", fieldUnusual}, {"Expect", fieldUnusual}, {"Trailer", fieldUnusual},
	}
	for i, name := range claimHeaders {
		fields = append(fields, knownField{name, i})
	}
	for _, f := range fields {
		table[len(f.name)] = append(table[len(f.name)], f)
	}
	return table
}()

type knownField struct {
	name    string
	meaning int
}

// meaningOf returns what the field with that name means, whatever the case of its letters.
func meaningOf(name []byte) int {
	if len(name) < len(known) {
		for i := range known[len(name)] {
			k := &known[len(name)][i]
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

// meaning takes in what a field means, and reports whether that is usual.
func (f *framing) meaning(b, name []byte, value span) bool {
	text := b[value.from:value.to]
	switch meaning := meaningOf(name); meaning {
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

// length takes in a Content-Length, of at most 15 digits.
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

// A byteSet is a set of bytes.
type byteSet [256]bool

const (
	capitals     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyz" + capitals
)

var (
	methodBytes = bytesOf(capitals)
	nameBytes   = bytesOf(alphanumeric + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2, token
	hostBytes   = bytesOf(alphanumeric + ".-_:[]")
	targetBytes = visible() // without controls and blanks
	valueBytes  = visible(' ', '\t')

	plainPathBytes = bytesOf(alphanumeric + "/-_.~$&+,:;=@") // which package url never escapes
)

func bytesOf(s string) (set byteSet) {
	for _, c := range []byte(s) {
		set[c] = true
	}
	return set
}

// visible returns all bytes but blanks and controls, and also those in more.
func visible(more ...byte) (set byteSet) {
	for c := range set {
		set[c] = c > ' ' && c != 0x7f
	}
	for _, c := range more {
		set[c] = true
	}
	return set
}
