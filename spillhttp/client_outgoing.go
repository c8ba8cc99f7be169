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

// outgoing is the body of a request, which remembers that it could not be read: that is the caller's own
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

// Close is called by the base, also while it reads.
func (o *outgoing) Close() error {
	o.closed.Store(true)
	return o.ReadCloser.Close()
}

// mayFail reports whether reading a body may fail. It does not wrap others: net/http sends a body in
// memory together with its header, by its type.
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

// The types of io.NopCloser, which have the reader in their first field.
var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{}))
)

// queued says whether an attempt has had a connection, or has asked for one. Without either it has waited for other calls
// of this process: [http.Transport.MaxConnsPerHost].
type queued struct{ left atomic.Bool }

// trace returns a context by which q learns it. That costs some allocations, so it is only for a base with such a limit.
func (q *queued) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { q.left.Store(true) },
		DNSStart:     func(httptrace.DNSStartInfo) { q.left.Store(true) },
		ConnectStart: func(string, string) { q.left.Store(true) },
	})
}

// limits reports whether calls may wait in a base for other calls.
func limits(base http.RoundTripper) bool {
	t, ok := base.(*http.Transport)
	return ok && t.MaxConnsPerHost > 0
}
