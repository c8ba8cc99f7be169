package spillhttp

import (
	"context"
	"net"
	"net/http"

	"github.com/seed90641741/spillway/spillhttp/internal/early"
)

// A Listener rejects requests for overload before net/http has read them. Its connections examine
// the bytes that net/http is about to read. A connection answers by itself, and net/http never sees
// the request, if three conditions hold: the bytes after the last request begin with the complete
// head of an HTTP/1.1 request that keeps the connection; the body has at most 16 KiB; and the
// [Handler] would reject the request now. It answers without waiting for the body, and discards the
// body. Everything else passes unchanged: heads in several pieces, bodies that are longer or of
// unknown length, pipelined requests, upgrades, HTTP/2 and TLS. There is one exception: an empty
// line after a request that the connection answered is invalid, as it is for net/http after any
// request but a POST. Functions of a [HandlerConfig] that read the body get an error. The request
// then passes, and they are called again by the Handler. If one panics, the Handler panics with the
// same value.
//
// A Listener must learn where requests end: use [ConnState] and [ConnContext], or [Handler.Serve],
// which does all of this. The Handler must serve all requests of the connection.
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

// ConnState informs the connections of a [Listener] about where requests end. It must be the
// [http.Server.ConnState] of a server that serves from a Listener, or be called by it. Without it
// every request passes.
func ConnState(c net.Conn, state http.ConnState) { early.State(c, state) }

// ConnContext returns ctx with the connection, if it is one of a [Listener]. So the Handler decides
// on a request with the [spillway.Level] with which it has passed the Listener. It should be the
// [http.Server.ConnContext] of a server that serves from a Listener, or be called by it. Without it
// the Handler draws another level, and fewer requests pass both decisions.
func ConnContext(ctx context.Context, c net.Conn) context.Context { return early.Context(ctx, c) }

// Serve serves with s from l, as [http.Server.Serve] does, with early rejection by h, which must be
// the Handler of s. While new connections are most of the work of the process, connections above a
// limit are reset: see Overload in package connlimit. Serve extends s.ConnState and s.ConnContext,
// so call it before s serves anything else.
//
// Reading a head costs processor time before h can reject the request. So if s.MaxHeaderBytes is
// zero, Serve sets it to 64 KiB; the default of net/http is 1 MiB. Long heads are charged to the
// address that sends them: see Long heads in package connlimit. Set s.ReadHeaderTimeout as well,
// which has no default.
func (h *Handler) Serve(s *http.Server, l net.Listener) error {
	extend(s, ConnContext, ConnState)
	limited, err := h.limited(s, l)
	if err != nil {
		return err
	}
	return s.Serve(NewListener(limited, h))
}

// ServeTLS serves with s from l, as [http.Server.ServeTLS] does. h must be the Handler of s.
// Requests are rejected in the handler, not early. While handshakes are most of the work of the
// process, connections above a limit are reset before their handshake: see Overload in package
// connlimit. For heads see [Handler.Serve].
func (h *Handler) ServeTLS(s *http.Server, l net.Listener, certFile, keyFile string) error {
	limited, err := h.limited(s, l)
	if err != nil {
		return err
	}
	return s.ServeTLS(limited, certFile, keyFile)
}
