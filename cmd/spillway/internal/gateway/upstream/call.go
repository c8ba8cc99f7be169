package upstream

import (
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
)

// maxMessage is the maximum length of a message of an endpoint.
const maxMessage = 16 << 10

// A call is one call by gRPC that the proxy makes itself, over a transport of net/http: a health check or a
// stream of load reports. It is a [connect.HTTPClient] and the body of its answer, as the library reads
// messages of any length.
type call struct {
	http.RoundTripper
	io.ReadCloser
	left int // bytes that may be read
}

// newCall returns a call, and a client for it alone.
func newCall[Request, Message any](t http.RoundTripper, url string) (*call, *connect.Client[Request, Message]) {
	c := &call{RoundTripper: t, left: maxMessage}
	return c, connect.NewClient[Request, Message](c, url, connect.WithGRPC(), connect.WithAcceptCompression("gzip", nil, nil))
}

// Do implements [connect.HTTPClient].
func (c *call) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", userAgent)
	resp, err := c.RoundTrip(r)
	if err == nil {
		c.ReadCloser, resp.Body = resp.Body, c
	}
	return resp, err
}

func (c *call) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, fmt.Errorf("a message of more than %d bytes", maxMessage)
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// bad returns the error of a call without the text that the endpoint has sent.
func bad(err error) error {
	if connect.IsWireError(err) {
		return fmt.Errorf("answered with the status %q of gRPC", connect.CodeOf(err))
	}
	return err
}
