package spillhttp

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// framing says where the parts of a request are, in bytes.
type framing struct {
	method, target int // where they end
	head           int // length of the head, with the empty line
	body           int64
	hosts, lengths int  // how many there were
	repeats        bool // a claim comes more than once
	claims         [claimKinds]span
}

// span is where the value of a field is; the zero span is that of none.
type span struct{ from, to int }

// frame finds the end of the request that b begins with. It is stricter than
// net/http, and than RFC 9112: ok means that the head is complete, that net/http
// reads it as the same one request and keeps the connection, and that nothing is
// unusual about it.
func frame(b []byte) (f framing, ok bool) {
	ok = f.read(b)
	return f, ok
}

// read is frame for a framing that is zero.
func (f *framing) read(b []byte) bool {
	for at := f.requestLine(b); at > 0; at = f.field(b, at) {
		if startsLine(b[at:]) {
			f.head = at + len(crlf)
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

// requestLine takes in a line like "GET /path HTTP/1.1", and returns where the next begins,
// or 0.
func (f *framing) requestLine(b []byte) (next int) {
	const version = " HTTP/1.1" + crlf
	f.method = methodBytes.span(b)
	target := f.method + 1
	if f.method == 0 || target >= len(b) || b[f.method] != ' ' || b[target] != '/' || string(b[:f.method]) == http.MethodConnect {
		return 0
	}
	f.target = target + targetBytes.span(b[target:])
	if next = f.target + len(version); next > len(b) || string(b[f.target:next]) != version {
		return 0
	}
	return next
}

// field takes in the line like "Name: value" at b[at], and returns where the next begins,
// or 0.
func (f *framing) field(b []byte, at int) (next int) {
	colon := at + nameBytes.span(b[at:])
	if colon == at || colon >= len(b) || b[colon] != ':' {
		return 0
	}
	from := colon + 1
	for from < len(b) && isBlank(b[from]) {
		from++
	}
	to := from + valueBytes.span(b[from:])
	if !startsLine(b[to:]) {
		return 0
	}
	next = to + len(crlf)
	for to > from && isBlank(b[to-1]) {
		to--
	}
	if !f.meaning(b, b[at:colon], span{from, to}) {
		return 0
	}
	return next
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
	add := func(name string, meaning int) {
		table[len(name)] = append(table[len(name)], knownField{name, meaning})
	}
	for i, name := range claimHeaders {
		add(name, i)
	}
	add("Host", fieldHost)
	add("Content-Length", fieldLength)
	add("Connection", fieldConnection)
	for _, name := range [...]string{"Transfer-Encoding", "Upgrade", "Expect", "Trailer"} {
		add(name, fieldUnusual)
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
			if string(name) == k.name || (name[0]|' ') == (k.name[0]|' ') && bytes.EqualFold(name, []byte(k.name)) {
				return k.meaning
			}
		}
	}
	return fieldOther
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
		f.repeats = f.repeats || f.claims[meaning] != span{}
		f.claims[meaning] = value
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

// A head is a request without a body, and a buffer for the answer. It is used again for
// other requests.
type head struct {
	request http.Request
	values  []string // of its header
	answer  []byte

	said  claimFields // of a glance
	texts [claimKinds]string
}

var heads = sync.Pool{New: func() any { return &head{request: http.Request{Header: make(http.Header)}} }}

// read makes the request of what frame has accepted, as net/http would. It
// reports whether that is possible.
func (x *head) read(b []byte, f *framing, remoteAddr string) bool {
	text := string(b[:f.head])
	target := text[f.method+1 : f.target]
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	header := x.request.Header
	clear(header)
	x.values = x.values[:0]
	x.request = http.Request{
		Method: text[:f.method], URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: http.NoBody, RemoteAddr: remoteAddr,
	}
	_, fields, _ := strings.Cut(text, "\r\n")
	for line, rest, _ := strings.Cut(fields, "\r\n"); line != ""; line, rest, _ = strings.Cut(rest, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		x.add(textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t"))
	}
	return true
}

// glance is read for a [Handler] that looks at nothing but the path and the claims of a
// request, and at the address: it only puts the claims into x. It returns the path. It
// reports false if the whole request must be read.
func (x *head) glance(b []byte, f *framing) (path []byte, ok bool) {
	path, _, _ = bytes.Cut(b[f.method+1:f.target], []byte{'?'})
	if f.repeats || bytes.IndexByte(path, '%') >= 0 {
		return nil, false
	}
	x.said = claimFields{}
	for i, value := range &f.claims {
		if value != (span{}) {
			x.texts[i] = textOf(b[value.from:value.to], x.texts[i])
			x.said[i] = x.texts[i : i+1]
		}
	}
	if string(b[:f.method]) != http.MethodPost {
		x.said[claimGRPCTimeout], x.said[claimGRPCAttempts] = nil, nil
	}
	return path, true
}

// textOf returns b as a text. That of the request before, and common ones, need no memory.
func textOf(b []byte, before string) string {
	if string(b) == before {
		return before
	}
	for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		if string(b) == c.String() {
			return c.String()
		}
	}
	return string(b)
}

func (x *head) add(key, value string) {
	h := x.request.Header
	switch values, again := h[key]; {
	case key == "Host":
		x.request.Host = value
	case again:
		h[key] = append(values, value)
	default:
		n := len(x.values)
		x.values = append(x.values, value)
		h[key] = x.values[n : n+1 : n+1]
	}
}

// refusal returns the whole answer that says why, byte for byte as HTTP/1.1 has
// it, with what answerTo says. Only a Date is missing, which an answer of this kind can do
// without.
func (x *head) refusal(why *ingress.Refusal) []byte {
	x.answer = x.answer[:0]
	switch {
	case why.Outcome == spillway.OutcomeOverQuota:
		x.write("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n"+headerScope+": customer\r\n"+
			headerRateLimited+": true\r\n"+headerRateLimit+": ", valueUsedUp[0], ";t=", seconds(why.RetryAfter), crlf)
		x.writeRetryAfter(why.RetryAfter)
	case why.DontRetry:
		x.write(overloaded + headerScope + ": service\r\n" + headerShouldRetry + ": false\r\n")
	default:
		x.write(overloaded + headerScope + ": task\r\n")
		x.writeRetryAfter(why.RetryAfter)
	}
	if why.AcceptRatio != "" {
		x.write(headerAcceptRatio+": ", why.AcceptRatio, crlf)
	}
	x.write(crlf)
	return x.answer
}

const overloaded = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n" + headerOverloaded + ": true\r\n"

func (x *head) writeRetryAfter(d time.Duration) {
	x.write(headerRetryAfter+": ", seconds(d), "\r\n"+headerRetryAfterMs+": ", milliseconds(d), crlf)
}

func (x *head) write(texts ...string) {
	for _, text := range texts {
		x.answer = append(x.answer, text...)
	}
}
