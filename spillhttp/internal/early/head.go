package early

import (
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// A Head is a request without its body. It is valid only during a call of [Gate.Decide], and is
// reused for other requests.
type Head struct {
	// Memo is for the [Gate]. It is nil at first, and stays with the Head from one request to the
	// next.
	Memo any

	framing

	text    []byte // the bytes of the request
	post    bool
	request http.Request
	// pending, url, host and values are the parts of request.
	pending pendingBody
	url     url.URL
	host    string
	values  []string

	// before has the bytes after the request line of the last request. Most requests of a
	// connection have the same fields, so framing and header are valid for them, too.
	before  []byte
	listed  bool   // header and host are made from before
	version uint64 // rises when before or post changes
}

// remembered is the maximum length of before, in bytes.
const remembered = 1024

func newHead(known *table) *Head {
	return &Head{framing: framing{known: known}, request: http.Request{Header: make(http.Header)}}
}

// A pendingBody is the body of a request that is decided on before its body is read. It records
// whether Read was called.
type pendingBody struct{ wanted bool }

var errPending = errors.New("spillhttp: the body is not read before the request is admitted")

func (p *pendingBody) Read([]byte) (int, error) {
	p.wanted = true
	return 0, errPending
}

func (*pendingBody) Close() error { return nil }

// Method returns the method.
func (x *Head) Method() []byte { return x.text[:x.method] }

// Post reports whether the method is POST.
func (x *Head) Post() bool { return x.post }

// Path returns the path as it was sent, without the query. plain reports whether it has no escapes.
func (x *Head) Path() (path []byte, plain bool) {
	path = x.text[x.method+1 : x.target]
	if query := bytes.IndexByte(path, '?'); query >= 0 {
		path = path[:query]
	}
	return path, bytes.IndexByte(path, '%') < 0
}

// Field returns the value of the field with that index in [Names], and reports whether there is
// one.
func (x *Head) Field(place int) (value []byte, ok bool) {
	s := x.spans[place]
	return x.text[x.line+s.from : x.line+s.to], s != span{}
}

// Repeats reports whether one of the fields in [Names] comes more than once. If so, Field returns
// the last value, and the header of [Head.Request] has all of them.
func (x *Head) Repeats() bool { return x.repeats }

// Version returns a number above zero. It changes when Post, Repeats or a Field may differ from the
// last request.
func (x *Head) Version() uint64 { return x.version }

// BodyWanted reports whether the body of the request was read. This fails before the request is
// admitted.
func (x *Head) BodyWanted() bool { return x.pending.wanted }

// Request returns the same request that net/http makes, and reports whether that is possible. The
// request must not be changed. Parts that are equal to the last request need no new memory.
func (x *Head) Request(remoteAddr string) (*http.Request, bool) {
	r := &x.request
	if target := x.text[x.method+1 : x.target]; string(target) != r.RequestURI {
		r.RequestURI = string(target)
	}
	if method := x.Method(); string(method) != r.Method {
		r.Method = string(method)
	}
	if !x.listed {
		x.list(string(x.text[x.line:x.head]))
		x.listed = true
	}
	*r = http.Request{
		Method: r.Method, URL: &x.url, RequestURI: r.RequestURI, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.Header, Host: x.host, Body: http.NoBody, ContentLength: x.body, RemoteAddr: remoteAddr,
	}
	if x.body > 0 {
		r.Body = &x.pending
	}
	return r, x.locate(r.RequestURI)
}

// parse reports whether b begins with a complete head, as in [frame], and ends with the request or
// within its body. For a body longer than MaxBody it returns false, because net/http must close the
// connection after it.
func (x *Head) parse(b []byte) bool {
	var line requestLine
	if !line.read(b) {
		return false
	}
	x.text, x.pending = b, pendingBody{}
	if post := string(b[:line.method]) == http.MethodPost; post != x.post {
		x.post = post
		x.version++
	}
	if fields := b[line.line:]; len(x.before) > 0 && bytes.HasPrefix(fields, x.before) {
		x.requestLine, x.head = line, line.line+len(x.before)
	} else {
		x.before, x.listed = x.before[:0], false
		x.version++
		x.framing = framing{known: x.known, requestLine: line}
		if !x.fields(fields) {
			return false
		}
		if n := x.head - line.line; n <= remembered {
			x.before = append(x.before, fields[:n]...)
		}
	}
	return x.body <= MaxBody && x.owes(b) >= 0
}

// locate sets the URL from a target, and reports whether the target is valid. Package url reads a
// target that is not a plain path.
func (x *Head) locate(target string) bool {
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

// list makes the header from the lines of fields.
func (x *Head) list(fields string) {
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
