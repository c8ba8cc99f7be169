package spillhttp

import (
	"bytes"
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
)

// A head is a request without a body, and a buffer for the answer. It is used again for
// other requests.
type head struct {
	framing

	request http.Request
	url     url.URL  // of the request
	host    string   // as its fields have it
	values  []string // of its header
	context headContext
	answer  []byte

	said   claimFields // of a glance
	texts  [claimKinds]string
	claims ingress.Claims // what they mean

	// before holds the bytes after the request line of the request before. Most requests of a
	// connection have the same fields: then framing, header and claims hold for them, too.
	before []byte
	listed bool // the header and host belong to before
	judged bool // said and claims belong to before
}

// remembered is the maximum length of what is kept in before.
const remembered = 1024

var heads = sync.Pool{New: func() any { return newHead() }}

func newHead() *head {
	return &head{request: http.Request{Header: make(http.Header)}, context: headContext{Context: context.Background()}}
}

// A headContext is the context of the events of a request that is rejected early. The observer
// finds the head of the request in it, if the Handler has read it, and may give the answer an id.
type headContext struct {
	context.Context //nolint:containedctx // it is the background

	head claims.Head
}

// Value implements [context.Context].
func (c *headContext) Value(key any) any {
	if key == (claims.HeadKey{}) && c.head.Request != nil {
		return &c.head
	}
	return nil
}

// frame reports whether b is exactly one request without a body, as [frame] has it, and no
// POST: what may follow one is different for net/http, so it has to see all of them.
func (x *head) frame(b []byte) bool {
	var line requestLine
	if !line.read(b) || string(b[:line.method]) == http.MethodPost {
		return false
	}
	fields := b[line.line:]
	if len(fields) > 0 && bytes.Equal(fields, x.before) {
		x.requestLine, x.head = line, len(b)
		return true
	}
	x.before, x.listed, x.judged = x.before[:0], false, false
	x.framing = framing{requestLine: line}
	if !x.fields(fields) || x.head != len(b) || x.body != 0 {
		return false
	}
	if len(fields) <= remembered {
		x.before = append(x.before, fields...)
	}
	return true
}

// read makes the same request of b as net/http would, after frame has accepted b. It reports
// whether that is possible. What repeats the request before needs no new memory.
func (x *head) read(b []byte, remoteAddr string) bool {
	r := &x.request
	if target := b[x.method+1 : x.target]; string(target) != r.RequestURI {
		r.RequestURI = string(target)
	}
	if method := b[:x.method]; string(method) != r.Method {
		r.Method = string(method)
	}
	if !x.listed {
		x.list(string(b[x.line:x.head]))
		x.listed = true
	}
	*r = http.Request{
		Method: r.Method, URL: &x.url, RequestURI: r.RequestURI, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.Header, Host: x.host, Body: http.NoBody, RemoteAddr: remoteAddr,
	}
	return x.locate(r.RequestURI)
}

// locate sets the URL to that of a target, and reports whether it is one. Most paths are read
// here, the others by package url.
func (x *head) locate(target string) bool {
	path, query, asked := strings.Cut(target, "?")
	if plainPath(path) {
		x.url = url.URL{Path: path, RawQuery: query, ForceQuery: asked && query == ""}
		return true
	}
	u, err := url.ParseRequestURI(target)
	if err == nil {
		x.url = *u
	}
	return err == nil
}

// plainPath reports whether a path is the same with and without escapes.
func plainPath(path string) bool {
	for i := range len(path) {
		if !plainPathBytes[path[i]] {
			return false
		}
	}
	return true
}

// list makes the header of the lines of fields.
func (x *head) list(fields string) {
	clear(x.request.Header)
	x.values, x.host = x.values[:0], ""
	for line, rest, _ := strings.Cut(fields, crlf); line != ""; line, rest, _ = strings.Cut(rest, crlf) {
		name, value, _ := strings.Cut(line, ":")
		x.add(textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t"))
	}
}

// glance returns the path. It is for a [Handler] that needs nothing else of a request but its
// address and its claims. It reports false if the whole request must be read.
func (x *head) glance(b []byte) (path []byte, ok bool) {
	path = b[x.method+1 : x.target]
	if query := bytes.IndexByte(path, '?'); query >= 0 {
		path = path[:query]
	}
	return path, !x.repeats && bytes.IndexByte(path, '%') < 0
}

// claimed returns the claims of a request that repeats none. They must not be changed.
func (x *head) claimed(b []byte) *ingress.Claims {
	if !x.judged {
		x.say(b[x.line:])
		x.judged = true
	}
	return &x.claims
}

// say reads the claims in the fields. Those of gRPC are for POST only.
func (x *head) say(fields []byte) {
	x.said = claimFields{}
	for i, value := range &x.spans {
		if value != (span{}) {
			x.texts[i] = textOf(fields[value.from:value.to], x.texts[i])
			x.said[i] = x.texts[i : i+1]
		}
	}
	x.said[claimGRPCTimeout], x.said[claimGRPCAttempts] = nil, nil
	x.claims = ingress.Claims{}
	x.said.read(&x.claims, true)
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
		x.host = value
	case again:
		h[key] = append(values, value)
	default:
		n := len(x.values)
		x.values = append(x.values, value)
		h[key] = x.values[n : n+1 : n+1]
	}
}

// refusal returns the complete answer for why to a request with a method, as bytes of HTTP/1.1, with
// the headers of answerTo. Only the Date is missing, which is optional in such an answer.
func (x *head) refusal(why *ingress.Rejection, text *wording, method []byte) []byte {
	b := x.answer[:0]
	switch {
	case why.Outcome == spillway.OutcomeOverQuota:
		b = append(append(append(b, overQuota...), text.fields...), quotaUsed...)
		b = append(append(b, seconds(why.RetryAfter)...), crlf...)
		b = appendRetryAfter(b, why.RetryAfter)
	case why.DontRetry:
		b = append(append(append(b, overloaded...), text.fields...), headerScope+": service\r\n"+headerShouldRetry+": false\r\n"...)
	default:
		b = append(append(append(b, overloaded...), text.fields...), headerScope+": task\r\n"...)
		b = appendRetryAfter(b, why.RetryAfter)
	}
	if why.AcceptRatio != "" {
		b = append(append(append(b, headerAcceptRatio+": "...), why.AcceptRatio...), crlf...)
	}
	if id := x.context.head.ID; id != "" {
		b = append(append(append(b, headerRequestID+": "...), id...), crlf...)
	}
	b = append(b, crlf...)
	if string(method) != http.MethodHead {
		b = append(b, text.body...)
	}
	x.answer = b
	return b
}

const (
	overloaded = "HTTP/1.1 503 Service Unavailable\r\n" + headerOverloaded + ": true\r\n"
	overQuota  = "HTTP/1.1 429 Too Many Requests\r\n" + headerScope + ": customer\r\n" + headerRateLimited + ": true\r\n"
	quotaUsed  = headerRateLimit + `: "quota";r=0;t=`
)

func appendRetryAfter(b []byte, d time.Duration) []byte {
	b = append(append(b, headerRetryAfter+": "...), seconds(d)...)
	b = append(append(b, "\r\n"+headerRetryAfterMs+": "...), milliseconds(d)...)
	return append(b, crlf...)
}
