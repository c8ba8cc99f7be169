package early

import (
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// A Head is a request without its body. It is valid only during a call of [Gate.Decide], and is used again for other requests.
type Head struct {
	// Memo is for the [Gate]: it stays with the Head from one request to the next, and is nil at first.
	Memo any

	framing

	text    []byte // of the request
	post    bool
	request http.Request
	pending pendingBody // of the request
	url     url.URL     // of the request
	host    string      // as its fields have it
	values  []string    // of its header

	// before holds the bytes after the request line of the request before. Most requests of a
	// connection have the same fields: then framing and header hold for them, too.
	before  []byte
	listed  bool   // the header and host belong to before
	version uint64 // of before and post
}

// remembered is the maximum length of what is kept in before.
const remembered = 1024

func newHead(known *table) *Head {
	return &Head{framing: framing{known: known}, request: http.Request{Header: make(http.Header)}}
}

// A pendingBody is the body of a request that is decided on before it is read. It says whether its Read was called.
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

// Path returns the path as it was sent, without the query, and reports whether it has no escapes.
func (x *Head) Path() (path []byte, plain bool) {
	path = x.text[x.method+1 : x.target]
	if query := bytes.IndexByte(path, '?'); query >= 0 {
		path = path[:query]
	}
	return path, bytes.IndexByte(path, '%') < 0
}

// Field returns the value of the field with that place in [Names], and reports whether there is one.
func (x *Head) Field(place int) (value []byte, ok bool) {
	s := x.spans[place]
	return x.text[x.line+s.from : x.line+s.to], s != span{}
}

// Repeats reports whether one of the fields in [Names] comes more than once: then the header of [Head.Request] has all of their values,
// and Field has the last one.
func (x *Head) Repeats() bool { return x.repeats }

// Version is a number above zero that changes when Post, Repeats or a Field may be another than for the last request.
func (x *Head) Version() uint64 { return x.version }

// BodyWanted reports whether the body of the request was read, which fails before the request is admitted.
func (x *Head) BodyWanted() bool { return x.pending.wanted }

// Request returns the same request as net/http makes of it, and reports whether that is possible. It must not be changed. What repeats
// the request before needs no new memory.
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

// parse reports whether b begins with a complete head, as [frame] has it, and ends with the request or within its body. The
// connection is not kept after a body longer than MaxBody: that is for net/http to see.
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

// locate sets the URL to that of a target, and reports whether it is one. Most paths are read
// here, the others by package url.
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

// list makes the header of the lines of fields.
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
