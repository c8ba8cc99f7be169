package spillhttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
)

// A head is a request without its body, and a buffer for the answer. It is used again for other
// requests.
type head struct {
	framing

	post    bool
	request http.Request
	pending pendingBody     // of the request
	url     url.URL         // of the request
	host    string          // as its fields have it
	values  []string        // of its header
	told    claims.Head     // to the observer, who may give the answer an id
	context context.Context //nolint:containedctx // the background with told, for the events of a request that is rejected
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
	x := &head{request: http.Request{Header: make(http.Header)}}
	x.context = context.WithValue(context.Background(), claims.HeadKey{}, &x.told)
	return x
}

// A pendingBody is the body of a request that is decided on before it is read. It says whether its Read was called.
type pendingBody struct{ wanted bool }

var errPending = errors.New("spillhttp: the body is not read before the request is admitted")

func (p *pendingBody) Read([]byte) (int, error) {
	p.wanted = true
	return 0, errPending
}

func (*pendingBody) Close() error { return nil }

// frame reports whether b begins with a complete head, as [frame] has it, and ends with the request or within its body. The
// connection is not kept after a body longer than drainBytes: that is for net/http to see.
func (x *head) frame(b []byte) bool {
	var line requestLine
	if !line.read(b) {
		return false
	}
	if post := string(b[:line.method]) == http.MethodPost; post != x.post {
		x.post, x.judged = post, false
	}
	if fields := b[line.line:]; len(x.before) > 0 && bytes.HasPrefix(fields, x.before) {
		x.requestLine, x.head = line, line.line+len(x.before)
	} else {
		x.before, x.listed, x.judged = x.before[:0], false, false
		x.framing = framing{requestLine: line}
		if !x.fields(fields) {
			return false
		}
		if n := x.head - line.line; n <= remembered {
			x.before = append(x.before, fields[:n]...)
		}
	}
	return x.body <= drainBytes && x.owes(b) >= 0
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
		Header: r.Header, Host: x.host, Body: http.NoBody, ContentLength: x.body, RemoteAddr: remoteAddr,
	}
	if x.body > 0 {
		r.Body = &x.pending
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
	h := x.request.Header
	clear(h)
	x.values, x.host = x.values[:0], ""
	for line, rest, _ := strings.Cut(fields, crlf); line != ""; line, rest, _ = strings.Cut(rest, crlf) {
		name, value, _ := strings.Cut(line, ":")
		key, value := textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")
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
	if x.judged {
		return &x.claims
	}
	x.judged = true
	x.said = claimFields{}
	for i, value := range &x.spans {
		if value != (span{}) && i != claimTrace {
			x.texts[i] = textOf(b[x.line+value.from:x.line+value.to], x.texts[i])
			x.said[i] = x.texts[i : i+1]
		}
	}
	if !x.post {
		x.said[claimGRPCTimeout], x.said[claimGRPCAttempts] = nil, nil
	}
	x.claims = ingress.Claims{}
	x.said.read(&x.claims)
	if trace := x.spans[claimTrace]; trace != (span{}) && x.claims.Level == 0 {
		x.claims.TraceLevel = claims.TraceLevelOf(b[x.line+trace.from : x.line+trace.to])
	}
	return &x.claims
}

// textOf returns b as a text, or one that means the same. That of the request before, classes, levels and progress need no memory.
func textOf(b []byte, before string) string {
	if string(b) == before {
		return before
	}
	for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		if string(b) == c.String() {
			return c.String()
		}
	}
	if n, ok := claims.Number(b, 255); ok && n > 0 {
		return claims.ProgressValues[n][0]
	}
	return string(b)
}

// refusal returns the complete answer for why to a request with a method, as bytes of HTTP/1.1, with
// the headers of answerTo. Only the Date is missing, which is optional in such an answer.
func (x *head) refusal(why *ingress.Rejection, text *wording, method []byte) []byte {
	b := x.answer[:0]
	switch {
	case why.Outcome == spillway.OutcomeOverQuota:
		b = appendAll(b, overQuota, text.fields, quotaUsed, seconds(why.RetryAfter), crlf)
	case why.DontRetry:
		b = appendAll(b, overloaded, text.fields, headerScope+": service\r\n"+headerShouldRetry+": false\r\n")
	default:
		b = appendAll(b, overloaded, text.fields, headerScope+": task\r\n")
	}
	if why.Outcome == spillway.OutcomeOverQuota || !why.DontRetry {
		b = appendAll(b, headerRetryAfter+": ", seconds(why.RetryAfter), crlf+headerRetryAfterMs+": ", milliseconds(why.RetryAfter), crlf)
	}
	if why.AcceptRatio != "" {
		b = appendAll(b, headerAcceptRatio+": ", why.AcceptRatio, crlf)
	}
	if id := x.told.ID; id != "" {
		b = appendAll(b, headerRequestID+": ", id, crlf)
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

func appendAll(b []byte, parts ...string) []byte {
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}
