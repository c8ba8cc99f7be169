// Package longheads notes where the heads of requests begin and end, for the connections of a server of net/http. Connections of package
// connlimit charge long heads to the address that sends them: parsing comes before any other gate.
//
// Use [Context] as ConnContext and [State] as ConnState of the server, and call [Began] in its Handler, for each request.
package longheads

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/seed90641741/spillway/internal/netconn"
)

// free is the number of bytes of a head that are not charged: accepting the connection costs more than to parse them. handshake
// is the number of bytes of a TLS handshake that are not charged: clients may send certificates.
const free, handshake = 4 << 10, 8 << 10

// A reader is a connection that charges heads.
type reader interface {
	HeadBegins(free int)
	HeadRead()
	HeadEnds(fields map[string][]string)
}

type key struct{}

// Context begins the first head of c. The context that it returns is for [Began].
func Context(ctx context.Context, c net.Conn) context.Context {
	x, ok := netconn.Find[reader](c)
	if !ok {
		return ctx
	}
	if _, secure := c.(*tls.Conn); secure {
		x.HeadBegins(free + handshake)
	} else {
		x.HeadBegins(free)
	}
	return context.WithValue(ctx, key{}, x)
}

// State stops counting when a head has been read, and begins the next one where the connection is idle.
func State(c net.Conn, state http.ConnState) {
	if state != http.StateActive && state != http.StateIdle {
		return
	}
	x, ok := netconn.Find[reader](c)
	switch {
	case !ok:
	case state == http.StateActive: // net/http says so when it has parsed the head
		x.HeadRead()
	default:
		x.HeadBegins(free)
	}
}

// Began ends the head of r.
func Began(r *http.Request) {
	if x, ok := r.Context().Value(key{}).(reader); ok {
		x.HeadEnds(r.Header)
	}
}

// Answered ends the head of a request that net/http has not seen, and begins the next one. The body of the request has this number of bytes.
func Answered(c net.Conn, body int64) {
	if x, ok := netconn.Find[reader](c); ok {
		x.HeadBegins(free + int(body))
	}
}
