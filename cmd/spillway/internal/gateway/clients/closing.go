package clients

import "net/http"

// framedTwice reports whether a chunked request may have had a Content-Length, too. RFC 9112, section
// 6.1, then has the connection end after the answer: who sent the request may have taken what
// follows its length for another one. It is not known of a connection with TLS, whose bytes are
// not read here.
func (c *clientConn) framedTwice() bool { return c.wire != nil && c.wire.lengths.Load() }

// WriteHeader implements [http.ResponseWriter]. It says if the connection ends.
func (x *Exchange) WriteHeader(status int) {
	if status >= http.StatusOK && (x.last || x.client != nil && x.client.owner.draining.Load() > 0) {
		x.Header().Set("Connection", "close")
	}
	x.ResponseWriter.WriteHeader(status)
}
