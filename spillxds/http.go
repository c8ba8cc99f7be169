package spillxds

import (
	"io"
	"net/http"
	"sync"
)

// RoundTripper returns an [http.RoundTripper] that counts for load reports what
// goes through it to base; nil means http.DefaultTransport. Give it to
// spillhttp.TransportConfig as Base, so that it sees what is really sent, each
// attempt by itself. A request is in progress until the body of its answer was
// read to the end or closed; it is a success if it has an answer below 500 whose
// body could be read as far as it was.
func (c *Cluster) RoundTripper(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &roundTripper{c, base}
}

type roundTripper struct {
	cluster *Cluster
	base    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.Host
	if req.URL != nil {
		host = req.URL.Host
	}
	load := t.cluster.at(host)
	load.Begin()
	answered := false
	defer func() {
		if !answered { // or the base has panicked
			load.End(false)
		}
	}()
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	answered = true
	success := resp.StatusCode < http.StatusInternalServerError
	if resp.Body == nil || resp.Body == http.NoBody {
		load.End(success)
		return resp, nil
	}
	b := &body{ReadCloser: resp.Body, load: load, success: success}
	resp.Body = b
	if w, ok := b.ReadCloser.(io.Writer); ok { // a protocol was switched to
		resp.Body = duplex{b, w}
	}
	return resp, nil
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *roundTripper) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// body is the body of an answer, whose end is that of the request.
type body struct {
	io.ReadCloser

	load    *Load
	success bool // if the body is
	once    sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.end(b.success)
	default:
		b.end(false)
	}
	return n, err
}

// Close ends a request whose body was read in part as what it was until then:
// readers stop when they have enough.
func (b *body) Close() error {
	defer b.end(b.success)
	return b.ReadCloser.Close()
}

func (b *body) end(success bool) { b.once.Do(func() { b.load.End(success) }) }

// duplex is a body that can be written to.
type duplex struct {
	*body
	io.Writer
}
