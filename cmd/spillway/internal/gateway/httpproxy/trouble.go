package httpproxy

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accesslog"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// Sent notes an attempt. The endpoints of a cluster call it.
func (n *accounting) Sent(endpoint string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attempts++
	n.endpoint = endpoint
}

// upstreamAnswered notes that the answer is the upstream's.
func (n *accounting) upstreamAnswered() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reached, n.head = true, time.Now()
}

// tell adds to a line and its decision what they say of a rejection or a failure. h is the header of the answer, with
// its trailers.
func (n *accounting) tell(x *accesslog.Record, d *decisions.Decision, end accounts.End, h http.Header) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x.Attempts, x.Endpoint = n.attempts, n.endpoint
	switch {
	case x.Status == 0:
	case n.reached && n.answered == nil:
		x.AnsweredBy = accesslog.ByUpstream
	default:
		x.AnsweredBy = accesslog.ByProxy
	}
	switch {
	case end.Account == accounts.Served:
	case end.Account == accounts.Rejected && end.Reason < accounts.MaxRequests:
		d.Policy = n.policy
		d.Measure(n.level, n.limit, n.refusal)
	case end.Account == accounts.Rejected:
		d.Policy, x.Error = decisions.ByProxy, n.answered.text
		d.MeasuredByProxy(n.listener.measured(end.Reason))
	default:
		x.Error = n.failed(end, h)
	}
}

// failed says why a request was not served in time.
func (n *accounting) failed(end accounts.End, h http.Header) string {
	switch {
	case n.answered == clientLeft:
		return ""
	case n.answered == tooSlow, n.answered == cutShort, n.answered == tooLong:
		return n.answered.text
	case n.err != nil:
		return upstream.FailureOf(n.err)
	case n.ended && n.outcome == spillway.OutcomeServed && end.Account == accounts.Failed:
		return "the answer broke off"
	case n.reached:
		return statusOf(h)
	case n.late:
		return "the deadline passed while the request waited here"
	default:
		return ""
	}
}

// statusOf returns the status of a call of gRPC, which may be a trailer; empty for another request or
// a call that has none.
func statusOf(h http.Header) string {
	for _, name := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if v := h[name]; len(v) > 0 {
			return "grpc-status " + decisions.Clean(v[0])
		}
	}
	return ""
}
