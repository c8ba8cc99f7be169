package httpproxy

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/internal/claims"
)

var _ decisions.Source = (*accounting)(nil)

// Describe implements [decisions.Source].
func (n *accounting) Describe(d *decisions.Decision) {
	describe(d, n.request, n.listener.settings.Load().config.Name)
	if n.to != nil {
		d.Cluster, d.Route = decisions.Split(n.to.LimitKey)
		d.Customer = decisions.Clean(n.to.Customer(n.request))
	}
}

// Caller implements [decisions.Source].
func (n *accounting) Caller() string { return callerOf(n.request) }

// decided reports a rejection that no policy made.
func (n *accounting) decided(end accounts.End) {
	call := spillway.Call{Criticality: end.Criticality}
	if n.to != nil {
		call.Key, call.Customer = n.to.LimitKey, n.to.Customer(n.request)
	}
	level, limit, unit := n.listener.measured(end.Reason)
	n.listener.decided.Reject(time.Now(), end.Reason, call, n, level, limit, unit)
}

// measured returns what is measured for a rejection that no policy made, and its limit; zero where
// nothing is.
func (l *listener) measured(reason accounts.Reason) (level, limit float64, unit string) {
	if reason != accounts.MaxRequests || l.clients == nil { // a rehearsal has none
		return 0, 0, ""
	}
	return float64(l.clients.Requests()), float64(l.settings.Load().config.MaxRequests), "requests at once"
}

// A head is the source of a request that was rejected when only its head had come.
type head struct {
	request  *http.Request
	listener string
	trusted  bool // the client names the id of its request
}

// Describe implements [decisions.Source].
func (h head) Describe(d *decisions.Decision) {
	if describe(d, h.request, h.listener); !h.trusted {
		d.RequestID = ""
	}
}

// Caller implements [decisions.Source].
func (h head) Caller() string { return callerOf(h.request) }

// describe sets what the request itself tells.
func describe(d *decisions.Decision, r *http.Request, listener string) {
	d.Listener, d.Path, d.Caller = listener, decisions.PathPrefix(r.URL.Path), callerOf(r)
	d.RequestID, d.TraceID = decisions.RequestID(r.Header), decisions.TraceID(r.Header)
}

// callerOf returns the name in the certificate of a client, or else its network.
func callerOf(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if name := claims.Identity(r.TLS.VerifiedChains[0][0]); name != "" {
			return decisions.Clean(name)
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	return decisions.Network(a)
}
