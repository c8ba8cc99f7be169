package spillhttp

import (
	"context"
	"net"
	"net/http"

	"github.com/seed90641741/spillway/spillhttp/internal/early"
)

// A Listener rejects requests for overload before net/http has read them. Its connections
// examine the bytes that net/http is about to read. The connection answers by itself, and
// net/http never sees the request, if the bytes begin, at the end of the request before, with
// the complete head of an HTTP/1.1 request, on a connection that is kept, with a body of at most 16 KiB, and
// the [Handler] would reject it now. It answers without waiting for the body, and drops that. Everything else is passed
// through unchanged: heads in several pieces, longer bodies and those of unknown length, pipelined requests, upgrades, HTTP/2; but an
// empty line after a request that the connection answered becomes invalid, as it is for net/http after any request
// but a POST. It cannot read TLS, and passes it through. Functions of a [HandlerConfig] that read the body get an error;
// the request is then passed through, and they see it again. If one panics, the panic goes on in the Handler.
//
// It needs to know where requests end: use [ConnState] and [ConnContext], or let [Handler.Serve] do
// all of this. The Handler must be what serves all requests of the connection.
type Listener struct {
	net.Listener

	rejecter *early.Rejecter
}

// NewListener returns a Listener on l that rejects requests that h would reject.
func NewListener(l net.Listener, h *Handler) *Listener {
	return &Listener{l, early.NewRejecter((*earlyGate)(h), claimHeaders)}
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.rejecter.Wrap(c), nil
}

// ConnState informs the connections of a [Listener] about where requests end. It must be
// the [http.Server.ConnState] of a server that serves from one, or be called by
// it; without it all is passed through.
func ConnState(c net.Conn, state http.ConnState) { early.State(c, state) }

// ConnContext returns ctx with the connection, if it is one of a [Listener], so that a request which it lets pass is served with the
// [spillway.Level] that it has passed with. It should be the [http.Server.ConnContext] of a server that serves from a Listener, or be called
// by it. Without it the level is drawn again, and fewer requests pass both decisions.
func ConnContext(ctx context.Context, c net.Conn) context.Context { return early.Context(ctx, c) }

// Serve serves with s from l, as [http.Server.Serve] does, with early rejection by h, which
// must be the Handler of s. While connections are most of the work of the process, those that come too often
// are reset: see Overload in package connlimit. It extends s.ConnState and s.ConnContext; call it before s serves anything else.
//
// A head is read, and costs processor time, before h can reject the request: if s.MaxHeaderBytes is zero, Serve sets it to
// 64 KiB, where net/http has 1 MiB. Long heads are charged to the address that sends them: see there in package connlimit. Set
// s.ReadHeaderTimeout as well, which has no default.
func (h *Handler) Serve(s *http.Server, l net.Listener) error {
	extend(s, ConnContext, ConnState)
	limited, err := h.limited(s, l)
	if err != nil {
		return err
	}
	return s.Serve(NewListener(limited, h))
}

// ServeTLS serves with s from l, as [http.Server.ServeTLS] does. h must be the Handler of s. Requests are
// rejected in the handler, not early. While handshakes are most of the work of the process, connections that come too often are
// reset before theirs: see Overload in package connlimit. For heads see [Handler.Serve].
func (h *Handler) ServeTLS(s *http.Server, l net.Listener, certFile, keyFile string) error {
	limited, err := h.limited(s, l)
	if err != nil {
		return err
	}
	return s.ServeTLS(limited, certFile, keyFile)
}
