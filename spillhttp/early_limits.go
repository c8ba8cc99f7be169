package spillhttp

import (
	"net"
	"net/http"
	"time"

	"github.com/seed90641741/spillway/connlimit"
)

// longestHead is the default of MaxHeaderBytes, in bytes: the heads of browsers and proxies have a few kilobytes.
const longestHead = 64 << 10

// limitHeads sets the default of MaxHeaderBytes. A server may serve from several listeners at once.
func (h *Handler) limitHeads(s *http.Server) {
	h.heads.Lock()
	defer h.heads.Unlock()
	if s.MaxHeaderBytes == 0 {
		s.MaxHeaderBytes = longestHead
	}
}

// limited returns a listener that resets connections while they are an overload.
func (h *Handler) limited(l net.Listener) (net.Listener, error) {
	return connlimit.NewListener(l, connlimit.Config{Work: h.work})
}

// work is that of the ingress.Server, and requests that bypass it: these use their connections as well.
func (h *Handler) work(now time.Time) (begun uint64, cpu float64) {
	begun, cpu = h.ingress.Work(now)
	return begun + h.exempted.Load(), cpu
}
