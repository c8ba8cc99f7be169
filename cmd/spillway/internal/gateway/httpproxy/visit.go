package httpproxy

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// A visit has the data for the access log and the span of a request. It is nil for requests
// with neither.
type visit struct {
	log   *logs.AccessLog // nil: there is none
	span  *exporters.Span // nil: there is none
	began time.Time
}

// visit returns the visit of a request, or nil if it is neither logged nor traced.
func (l *listener) visit(r *http.Request, s *settings) *visit {
	log := l.proxy.access.Load()
	if log == nil && l.proxy.with.Tracer == nil {
		return nil
	}
	now := time.Now()
	span := l.proxy.with.Tracer.Start(now, r.Header, s.internal)
	if log == nil && span == nil {
		return nil
	}
	return &visit{log, span, now}
}

// inject makes the span the parent of the request that is sent on. It does nothing on nil.
func (v *visit) inject(h http.Header) {
	if v != nil {
		v.span.Inject(h)
	}
}

// end writes the line and ends the span of a request. It does nothing on nil.
func (v *visit) end(n *accounting, end accounts.End) {
	if v == nil {
		return
	}
	now := time.Now()
	logged := v.log != nil && v.log.Samples(now, end.Account)
	if !logged && v.span == nil {
		return
	}
	var d decisions.Decision
	n.Describe(&d)
	x := lineOf(n.request, end)
	x.Time, x.Duration = v.began, milliseconds(now.Sub(v.began))
	x.Status, x.Bytes = n.exchange.Answer()
	if n.request.Method == http.MethodHead {
		x.Bytes = 0 // net/http sends no body, and takes what is written
	}
	n.tell(&x, &d, end)
	x.Set(&d)
	if !n.left.IsZero() {
		x.Wait = new(milliseconds(n.left.Sub(v.began)))
		if !n.head.IsZero() {
			x.Upstream = new(milliseconds(n.head.Sub(n.left)))
		}
	}
	if logged {
		v.log.Write(&x)
	}
	v.span.End(now, x.SpanName(), x.Status >= 500 || end.Account == accounts.Failed, x.Attributes()...)
}

// lineOf returns the line of a request, without its times, its answer and its decision.
func lineOf(r *http.Request, end accounts.End) logs.Record {
	x := logs.Record{
		Account: end.Account.String(), Method: decisions.Clean(r.Method), Path: decisions.Clean(r.URL.Path), Class: end.Criticality.String(), Retried: end.Retried,
	}
	if end.Account == accounts.Rejected {
		x.Reason = end.Reason.String()
	}
	return x
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// tell adds to a line and its decision what they say of a rejection or a failure.
func (n *accounting) tell(x *logs.Record, d *decisions.Decision, end accounts.End) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x.Attempts, x.Endpoint = n.attempts, n.endpoint
	x.Level, x.Progress = int(n.rank), int(n.progress)
	switch {
	case x.Status == 0:
	case n.answered == nil && !n.head.IsZero():
		x.AnsweredBy = logs.ByUpstream
	default:
		x.AnsweredBy = logs.ByProxy
	}
	switch {
	case end.Account == accounts.Served:
	case end.Account == accounts.Rejected && end.Reason < accounts.MaxRequests:
		d.Policy = n.policy
		d.Measure(n.level, n.limit, n.rejection)
	case end.Account == accounts.Rejected:
		d.Policy, x.Error = decisions.ByProxy, n.answered.text
		d.MeasuredByProxy(n.listener.measured(end.Reason))
	default:
		x.Error = n.failed(end)
	}
}

func (n *accounting) failed(end accounts.End) string {
	switch {
	case n.answered == errClientLeft:
		return ""
	case n.answered == errSlow, n.answered == errCutShort, n.answered == errTooLong:
		return n.answered.text
	case n.err != nil:
		return upstream.FailureOf(n.err)
	case n.outcome == spillway.OutcomeServed && end.Account == accounts.Failed:
		return "the answer broke off"
	case !n.head.IsZero():
		return statusOf(n.exchange.Header())
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
