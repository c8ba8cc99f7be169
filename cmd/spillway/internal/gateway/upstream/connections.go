package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// noConnectionError says that the deadline of a request passed while all connections to the endpoint were
// in use. The limit on them is the proxy's own, and the endpoint did not get the request.
type noConnectionError struct{ error }

// Error says what was waited for.
func (noConnectionError) Error() string {
	return "no connection was free before the deadline (max_connections of the cluster)"
}

func (e noConnectionError) Unwrap() error { return e.error }

// placeKey is the context key of the place of an attempt.
type placeKey struct{}

// A place is whether an attempt got a connection, or may make one.
type place struct {
	context.Context //nolint:containedctx // it is one

	keeping *keeping // of the endpoint

	came  atomic.Bool
	got   atomic.Int32              // connections: net/http may send a request again
	conn  atomic.Pointer[firstConn] // the last of them; nil: none of HTTP/1.1
	inner atomic.Pointer[secondConn]
	sent  atomic.Uint32 // the stream, by HTTP/2
	trace httptrace.ClientTrace
}

// Value implements [context.Context].
func (x *place) Value(key any) any {
	if key == (placeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// await returns the request with its place. first says that it is sent by HTTP/1.1.
func await(r *http.Request, k *keeping, first bool) (*http.Request, *place) {
	x := &place{Context: r.Context(), keeping: k}
	once := !repeats(r)
	settle := func() {}
	if once && first {
		r, settle = replayable(r)
	}
	x.trace.GotConn = func(got httptrace.GotConnInfo) {
		x.came.Store(true)
		if c, ok := got.Conn.(*firstConn); ok {
			if once && got.Reused && !k.open(sinceEpoch(), got.IdleTime) {
				c.rejects.Store(true)
				return
			}
			c.begin()
			x.conn.Store(c)
		}
		if c, ok := got.Conn.(*turnConn); ok {
			second, _ := c.Conn.(*secondConn)
			x.inner.Store(second)
		}
		settle()
		x.got.Add(1)
	}
	if !first {
		x.trace.WroteHeaders = x.wrote
	}
	return r.WithContext(httptrace.WithClientTrace(x, &x.trace)), x
}

// wrote notes the stream of a request. net/http lets no other request be sent on the connection meanwhile.
func (x *place) wrote() {
	if c := x.inner.Load(); c != nil {
		x.sent.Store(c.sent.Load())
	}
}

// restore gives an answer back what net/http has removed from its head.
func (x *place) restore(resp *http.Response) {
	if c := x.conn.Load(); c != nil {
		c.restore(resp)
	}
}

// explain returns the error of an attempt. If it got no connection until its deadline, that says so.
func (x *place) explain(err error) error {
	if !x.came.Load() && errors.Is(x.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return noConnectionError{err}
	}
	if c := x.inner.Load(); tooLong(err, c != nil && x.sent.Load() > 0 && c.long.Load() == x.sent.Load()) {
		return tooLongError{err}
	}
	return err
}

// noting returns dial, and has it note whose place it is. The context of a dial has the values of the request that it
// is for.
func noting(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if x, ok := ctx.Value(placeKey{}).(*place); ok {
			x.came.Store(true)
		}
		return dial(ctx, network, address)
	}
}
