package httpproxy

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accesslog"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/internal/claims"
)

var _ decisions.Source = (*accounting)(nil)

// Describe implements [decisions.Source].
func (n *accounting) Describe(d *decisions.Decision) {
	d.OfRequest(n.request, n.listener.settings.Load().config.Name)
	if n.to != nil {
		d.Cluster, d.Route = decisions.Split(n.to.LimitKey)
		d.Customer = decisions.Clean(n.to.Customer(n.request))
	}
}

// Caller implements [decisions.Source].
func (n *accounting) Caller() string { return decisions.CallerOf(n.request) }

// decided reports a rejection that no policy made.
func (n *accounting) decided(end accounts.End) {
	call := spillway.Call{Criticality: end.Criticality}
	call.Key, call.Customer = n.Place()
	level, limit, unit := n.listener.measured(end.Reason)
	n.listener.proxy.decided.Reject(time.Now(), end.Reason, call, n, level, limit, unit)
}

// measured returns what is measured for a rejection that no policy made, and its limit; zero where
// nothing is.
func (l *listener) measured(reason accounts.Reason) (level, limit float64, unit string) {
	if reason != accounts.MaxRequests || l.clients == nil { // a rehearsal has none
		return 0, 0, ""
	}
	return float64(l.clients.Requests()), float64(l.settings.Load().config.MaxRequests), "requests at once"
}

// Place implements [decisions.Source].
func (n *accounting) Place() (limitKey, customer string) {
	if n.to == nil {
		return "", ""
	}
	return n.to.LimitKey, n.to.Customer(n.request)
}

// A head is the source of a request that was rejected when only its head had come.
type head struct {
	*claims.Head

	listener string
}

// bytes returns the length of the body with which the request is rejected for a reason.
func (h head) bytes(reason spillway.Reason) int64 {
	if h.Request.Method == http.MethodHead || h.BodyLength == nil {
		return 0
	}
	return int64(h.BodyLength(reason))
}

// line returns the line of the access log for the rejection.
func (h head) line(e *spillway.Event, end accounts.End) accesslog.Record {
	var d decisions.Decision
	h.Describe(&d)
	d.Cluster, d.Route = decisions.Split(e.Call.Key)
	d.Customer, d.Policy = decisions.Clean(e.Call.Customer), e.Policy
	d.Measure(e.Level, e.Limit, e.Err)
	x := lineOf(h.Request, end)
	x.Set(&d)
	x.Time, x.Status, x.AnsweredBy, x.Bytes = e.Time, http.StatusServiceUnavailable, accesslog.ByProxy, h.bytes(e.Reason)
	if e.Reason == spillway.ReasonQuota {
		x.Status = http.StatusTooManyRequests
	}
	return x
}

// Describe implements [decisions.Source].
func (h head) Describe(d *decisions.Decision) {
	d.OfRequest(h.Request, h.listener)
	d.RequestID = decisions.Clean(h.ID)
}

// Caller implements [decisions.Source].
func (h head) Caller() string { return decisions.CallerOf(h.Request) }

// Place implements [decisions.Source]: the call of the gate has it.
func (h head) Place() (limitKey, customer string) { return "", "" }
