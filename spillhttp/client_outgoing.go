package spillhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"strings"
	"sync/atomic"
)

// outgoing is the body of a request. It remembers whether reading it failed: that is the caller's
// failure, and says nothing about the backend.
type outgoing struct {
	io.ReadCloser
	closed, failed atomic.Bool
}

func (o *outgoing) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !o.closed.Load() {
		o.failed.Store(true)
	}
	return n, err
}

// Close may be called by the base while it reads.
func (o *outgoing) Close() error {
	o.closed.Store(true)
	return o.ReadCloser.Close()
}

// mayFail reports whether reading a body may fail. Only such bodies are wrapped, because net/http
// recognizes a body in memory by its type, and sends it together with the header.
func mayFail(body io.ReadCloser) bool {
	if body == nil || body == http.NoBody {
		return false
	}
	var r io.Reader = body
	if t := reflect.TypeOf(body); t == nopCloser || t == nopCloserWriterTo {
		r, _ = reflect.TypeAssert[io.Reader](reflect.ValueOf(body).Field(0))
	}
	switch r.(type) {
	case *bytes.Buffer, *bytes.Reader, *strings.Reader:
		return false
	}
	return true
}

// These are the types that io.NopCloser returns. Their first field is the reader.
var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{}))
)

// queued records whether an attempt got a connection or began to open one. If it did neither, it
// waited for other calls of this process: [http.Transport.MaxConnsPerHost].
type queued struct{ left atomic.Bool }

// trace returns a context that makes net/http report to q. It allocates memory, so it is only for a
// base that limits its connections.
func (q *queued) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { q.left.Store(true) },
		DNSStart:     func(httptrace.DNSStartInfo) { q.left.Store(true) },
		ConnectStart: func(string, string) { q.left.Store(true) },
	})
}

// limits reports whether base limits its connections, so that an attempt may wait until another
// call has ended.
func limits(base http.RoundTripper) bool {
	t, ok := base.(*http.Transport)
	return ok && t.MaxConnsPerHost > 0
}
