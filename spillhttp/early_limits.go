package spillhttp

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/internal/longheads"
)

// longestHead is the default of MaxHeaderBytes, in bytes. The heads of browsers and proxies have a
// few kilobytes.
const longestHead = 64 << 10

// limitHeads sets MaxHeaderBytes if it is zero. It takes a lock, as a server may begin to serve
// from several listeners at once.
func (h *Handler) limitHeads(s *http.Server) {
	h.heads.Lock()
	defer h.heads.Unlock()
	if s.MaxHeaderBytes == 0 {
		s.MaxHeaderBytes = longestHead
	}
}

// limited returns a listener on l that resets connections in an overload by connections, and
// connections that send too many long heads.
func (h *Handler) limited(s *http.Server, l net.Listener) (net.Listener, error) {
	h.limitHeads(s)
	extend(s, longheads.Context, longheads.State)
	return connlimit.NewListener(l, connlimit.Config{Work: h.work})
}

// extend makes s call before and says in addition to its own ConnContext and ConnState, and ahead
// of them.
func extend(s *http.Server, before func(context.Context, net.Conn) context.Context, says func(net.Conn, http.ConnState)) {
	inner, told := s.ConnContext, s.ConnState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if ctx = before(ctx, c); inner != nil {
			ctx = inner(ctx, c)
		}
		return ctx
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		says(c, state)
		if told != nil {
			told(c, state)
		}
	}
}

// work is Config.Work of package connlimit. It counts the requests of the ingress.Server and those
// that bypass it, which need connections, too.
func (h *Handler) work(now time.Time) (begun uint64, cpu float64) {
	begun, cpu = h.ingress.Work(now)
	return begun + h.exempted.Load(), cpu
}
