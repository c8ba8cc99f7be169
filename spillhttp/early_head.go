package spillhttp

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"

	"github.com/seed90641741/spillway/ingress"
)

// framing says where the parts of a request are, in bytes.
type framing struct {
	method, target int // where they end
	head           int // length of the head, with the empty line
	body           int64
	hosts, lengths int // how many there were
}

// frame finds the end of the request that b begins with. It is stricter than
// net/http, and than RFC 9112: ok means that the head is complete, that net/http
// reads it as the same one request and keeps the connection, and that nothing is
// unusual about it.
func frame(b []byte) (f framing, ok bool) {
	line, rest, ok := cutLine(b)
	if !ok || !f.requestLine(line) {
		return f, false
	}
	for {
		if line, rest, ok = cutLine(rest); !ok {
			return f, false
		}
		if len(line) == 0 {
			f.head = len(b) - len(rest)
			return f, f.hosts == 1
		}
		if !f.field(line) {
			return f, false
		}
	}
}

// cutLine returns the first line of b without its end, which must be CRLF, and
// what follows.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return nil, nil, false
	}
	return b[:i-1], b[i+1:], true
}

// requestLine takes in a line like "GET /path HTTP/1.1".
func (f *framing) requestLine(line []byte) bool {
	const version = " HTTP/1.1"
	if !bytes.HasSuffix(line, []byte(version)) {
		return false
	}
	f.method, f.target = bytes.IndexByte(line, ' '), len(line)-len(version)
	if f.method < 1 || f.method+1 >= f.target || line[f.method+1] != '/' {
		return false
	}
	for _, c := range line[:f.method] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	for _, c := range line[f.method+1 : f.target] {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return string(line[:f.method]) != http.MethodConnect
}

// field takes in a line like "Name: value".
func (f *framing) field(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon < 1 {
		return false
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	for _, c := range name {
		if !nameBytes[c] {
			return false
		}
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return f.meaning(name, value)
}

// The fields that say where a request ends, and whether the connection is kept.
var (
	fieldHost       = []byte("Host")
	fieldLength     = []byte("Content-Length")
	fieldConnection = []byte("Connection")
	fieldKeepAlive  = []byte("keep-alive")
	fieldsUnusual   = [][]byte{[]byte("Transfer-Encoding"), []byte("Upgrade"), []byte("Expect"), []byte("Trailer")}
)

// meaning takes in what a field says of the framing, and reports whether that is
// usual.
func (f *framing) meaning(name, value []byte) bool {
	switch len(name) {
	case len("Host"):
		if bytes.EqualFold(name, fieldHost) {
			f.hosts++
			return plainHost(value)
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, fieldLength) {
			f.lengths++
			return f.lengths == 1 && f.length(value)
		}
	case len("Connection"):
		if bytes.EqualFold(name, fieldConnection) {
			return bytes.EqualFold(value, fieldKeepAlive)
		}
	}
	for _, unusual := range fieldsUnusual {
		if len(name) == len(unusual) && bytes.EqualFold(name, unusual) {
			return false
		}
	}
	return true
}

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

func plainHost(host []byte) bool {
	for _, c := range host {
		if !hostBytes[c] {
			return false
		}
	}
	return len(host) > 0
}

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

var (
	nameBytes = bytesOf(alphanumeric + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2, token
	hostBytes = bytesOf(alphanumeric + ".-_:[]")
)

func bytesOf(s string) (set [256]bool) {
	for _, c := range []byte(s) {
		set[c] = true
	}
	return set
}

// A head is a request without a body, and a buffer for the answer. It is used again for
// other requests.
type head struct {
	request http.Request
	url     url.URL
	header  http.Header
	values  []string // of the header
	answer  []byte
}

var heads = sync.Pool{New: func() any { return &head{header: make(http.Header)} }}

// read makes the request of what frame has accepted, as net/http would. It
// reports whether that is possible.
func (x *head) read(b []byte, f framing, remoteAddr string) bool {
	text := string(b[:f.head])
	target := text[f.method+1 : f.target]
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	x.begin(http.Request{
		Method: text[:f.method], URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, RemoteAddr: remoteAddr,
	})
	_, fields, _ := strings.Cut(text, "\r\n")
	for line, rest, _ := strings.Cut(fields, "\r\n"); line != ""; line, rest, _ = strings.Cut(rest, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		x.add(textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t"))
	}
	return true
}

// glance is read for a [Handler] that looks at nothing but the path and the claims
// of a request, and at the address: no more than these is made.
func (x *head) glance(b []byte, f framing, remoteAddr string) bool {
	path, _, _ := bytes.Cut(b[f.method+1:f.target], []byte{'?'})
	if bytes.IndexByte(path, '%') >= 0 {
		return x.read(b, f, remoteAddr)
	}
	if x.url.Path != string(path) {
		x.url = url.URL{Path: string(path)}
	}
	x.begin(http.Request{Method: methodOf(b[:f.method]), URL: &x.url, RemoteAddr: remoteAddr})
	_, rest, _ := cutLine(b[:f.head])
	for line, rest, _ := cutLine(rest); len(line) > 0; line, rest, _ = cutLine(rest) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		if key := claimOf(name); key != "" {
			x.add(key, string(bytes.Trim(value, " \t")))
		}
	}
	return true
}

// methodOf returns a method. Common ones need no memory.
func methodOf(b []byte) string {
	switch string(b) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	default:
		return string(b)
	}
}

// begin forgets the last request and begins another one.
func (x *head) begin(r http.Request) {
	clear(x.header)
	x.values = x.values[:0]
	x.request = r
	x.request.Header = x.header
}

func (x *head) add(key, value string) {
	switch values, again := x.header[key]; {
	case key == "Host":
		x.request.Host = value
	case again:
		x.header[key] = append(values, value)
	default:
		n := len(x.values)
		x.values = append(x.values, value)
		x.header[key] = x.values[n : n+1 : n+1]
	}
}

// refusal returns the whole answer that says why, byte for byte as HTTP/1.1 has
// it. Early, that is overload and nothing else. Only a Date is missing, which an
// answer of this kind can do without.
func (x *head) refusal(why ingress.Refusal) []byte {
	x.answer = append(x.answer[:0], "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"+headerOverloaded+": true\r\n"...)
	if why.DontRetry {
		x.answer = append(x.answer, headerScope+": service\r\n"+headerShouldRetry+": false\r\n"...)
	} else {
		x.answer = append(x.answer, headerScope+": task\r\n"+headerRetryAfter+": "...)
		x.answer = append(x.answer, seconds(why.RetryAfter)...)
		x.answer = append(x.answer, "\r\n"+headerRetryAfterMs+": "...)
		x.answer = append(x.answer, milliseconds(why.RetryAfter)...)
		x.answer = append(x.answer, "\r\n"...)
	}
	if why.AcceptRatio != "" {
		x.answer = append(x.answer, headerAcceptRatio+": "...)
		x.answer = append(x.answer, why.AcceptRatio...)
		x.answer = append(x.answer, "\r\n"...)
	}
	x.answer = append(x.answer, "\r\n"...)
	return x.answer
}
