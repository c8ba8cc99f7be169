package httpproxy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/claims"
)

// An accounting collects the reports of policies on one request. When the request ends, it is
// counted in one account. Policies report through an observer, and find it in the context.
type accounting struct {
	mu       sync.Mutex
	class    spillway.Criticality
	rank     spillway.Level    // of the task
	progress spillway.Progress // likewise
	rejected bool              // by a policy of the proxy
	reason   accounts.Reason
	late     bool             // the deadline passed while it waited
	outcome  spillway.Outcome // of the call to the upstream; 0: it has not ended
	withheld bool             // the call ended by a rejection of the proxy
	retried  bool
	answered *own // by the proxy itself; nil: it was not

	// What the line of the request says of its rejection or failure.
	policy       string // of the last rejection, with what it measured and allows
	level, limit float64
	rejection    error
	attempts     int    // that were sent
	endpoint     string // of the last of them
	err          error  // for which the proxy answered itself

	arrived time.Time // when the whole request was here; zero: its latency does not count
	left    time.Time // when it was admitted by the gate, had left the queue, and was sent on; zero: it was not
	head    time.Time // when the head of the answer came, or was made here; zero: there is none

	cost float64 // charged to the customer so far; only the goroutine of the request uses it

	before context.Context //nolint:containedctx // of the request that its gate gets
	timer  *timer          // nil: the request has no deadline, or was not admitted

	listener *listener
	id       []string      // of the request, as the values of its header
	request  *http.Request // as it came
	exchange *clients.Exchange
	to       *target // nil as long as no route was found
	visit    *visit  // nil: neither logged nor traced
}

func accountingOf(ctx context.Context) *accounting {
	if ctx == nil {
		return nil
	}
	e, _ := ctx.Value(decisions.SourceKey{}).(*accounting)
	return e
}

func (n *accounting) take(e *spillway.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Policy == "inflight" || e.Policy == "retry" { // elsewhere it is the attempt of the client
		n.retried = n.retried || e.Call.Attempt > 0
	}
	switch {
	case e.Mode != spillway.ModeEnforce && e.Rejected:
		return // it went on
	case e.Rejected:
		n.rejected, n.reason = true, accounts.Reason(e.Reason)
		n.policy, n.level, n.limit, n.rejection = e.Policy, e.Level, e.Limit, e.Err
	case e.Policy == "retry":
		n.outcome = e.Outcome
		n.withheld = errors.Is(e.Err, spillway.ErrRejected)
	case n.left.IsZero() && errors.Is(e.Err, context.DeadlineExceeded):
		n.late = true
	}
	n.class = e.Call.Criticality
	if n.rank == 0 { // as the gate has it
		n.rank, n.progress = e.Call.Level, e.Call.Progress
	}
}

// close returns how the request ended. gone says that the client has left, cut that the answer
// was cut short.
func (n *accounting) close(gone, cut bool) accounts.End {
	n.mu.Lock()
	defer n.mu.Unlock()
	end := accounts.End{Criticality: n.class, Retried: n.retried}
	if n.answered == nil && !n.arrived.IsZero() && !n.head.IsZero() {
		end.Waited, end.Sent = n.left.Sub(n.arrived), n.head.Sub(n.left)
	}
	left := accounts.GoneWaiting
	if !n.left.IsZero() {
		left = accounts.GoneSent
	}
	switch ended := n.outcome != 0; {
	case n.rejected && (!ended || n.withheld):
		end.Account, end.Reason = accounts.Rejected, n.reason
	case n.outcome == spillway.OutcomeServed && cut && gone:
		end.Account = left
	case n.outcome == spillway.OutcomeServed && cut:
		end.Account = accounts.Failed
	case n.outcome == spillway.OutcomeServed && n.answered == errLate:
		end.Account = accounts.Late // the answer had begun
	case ended && n.answered == errNotReached:
		end.Account = accounts.Failed // the retry policy takes an endpoint that is down for one that is overloaded
	case ended && n.answered == errSlow:
		end.Account = left // likewise a client that is late for an upstream that is
	case ended:
		end.Account = accounts.Upstream(n.outcome)
	case n.late:
		end.Account = accounts.Late
	case n.answered != nil:
		if end.Account, end.Reason = n.answered.account, n.answered.reason; end.Account == accounts.GoneWaiting {
			end.Account = left
		}
	case gone:
		end.Account = left
	case cut:
		end.Account = accounts.Failed
	}
	return end
}

// A bookkeeper is an observer that adds each event to the accounting of its request. A
// rejection without an accounting was made when the request headers arrived: it is the only
// event of that request.
type bookkeeper struct {
	proxy    *Proxy
	listener string // empty: it is not that of one
	trusted  bool   // its clients name the ids of their requests
}

// Observe implements [spillway.Observer].
func (b *bookkeeper) Observe(e spillway.Event) {
	switch n := accountingOf(e.Context); {
	case n != nil:
		n.take(&e)
	case e.Rejected && e.Mode == spillway.ModeEnforce:
		b.early(&e)
	}
	b.proxy.with.Observer.Observe(e)
}

// early counts a rejection that was made when the request headers arrived. If the head of the request is
// known, it gives the request an id, adds the source to the event, and writes the line.
func (b *bookkeeper) early(e *spillway.Event) {
	end := accounts.End{
		Account: accounts.Rejected, Reason: accounts.Reason(e.Reason), Criticality: e.Call.Criticality, At: b.proxy.with.Accounts.At(placeOf(b.listener, e.Call.Key)),
	}
	b.proxy.with.Accounts.Begin()
	b.proxy.with.Accounts.End(end)
	if e.Context == nil {
		return
	}
	h, ok := e.Context.Value(claims.HeadKey{}).(*claims.Head)
	if !ok {
		return
	}
	h.ID = message.IDOf(h.Request.Header, b.trusted)
	source := head{h, b.listener}
	e.Context = context.WithValue(e.Context, decisions.SourceKey{}, source)
	if log := b.proxy.access.Load(); log != nil && log.Samples(e.Time, end.Account) {
		x := source.line(e, end)
		log.Write(&x)
	}
}

// placeOf returns the place of the requests of a listener by the name of their route; no route matches
// those without one.
func placeOf(listener, name string) accounts.Place {
	if name == "" {
		return accounts.Place{Listener: listener}
	}
	cluster, route := decisions.Split(name)
	return accounts.Place{Listener: listener, Cluster: cluster, Route: route}
}

// observerOf returns what observes the gates of a listener, or with nil, the policies of clusters.
func (p *Proxy) observerOf(l *config.Listener) spillway.Observer {
	if l == nil {
		return &bookkeeper{proxy: p}
	}
	return &bookkeeper{p, l.Name, l.TrustsRequestID()}
}

// note notes that the proxy answers the request itself, for an error.
func (n *accounting) note(a *own, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answered, n.err, n.head = a, err, time.Now()
}

func (n *accounting) markSent() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left = time.Now()
}

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
	n.head = time.Now()
}

var _ decisions.Source = (*accounting)(nil)

// Describe implements [decisions.Source].
func (n *accounting) Describe(d *decisions.Decision) {
	d.OfRequest(n.request, n.listener.settings.Load().config.Name)
	if n.to != nil {
		d.Cluster, d.Route = decisions.Split(n.to.Name)
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
	n.listener.proxy.with.Decisions.Reject(time.Now(), end.Reason, call, n, level, limit, unit)
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
func (n *accounting) Place() (route, customer string) {
	if n.to == nil {
		return "", ""
	}
	return n.to.Name, n.to.Customer(n.request)
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
func (h head) line(e *spillway.Event, end accounts.End) logs.Record {
	var d decisions.Decision
	h.Describe(&d)
	d.Cluster, d.Route = decisions.Split(e.Call.Key)
	d.Customer, d.Policy = decisions.Clean(e.Call.Customer), e.Policy
	d.Measure(e.Level, e.Limit, e.Err)
	x := lineOf(h.Request, end)
	x.Set(&d)
	x.Time, x.Status, x.AnsweredBy, x.Bytes = e.Time, http.StatusServiceUnavailable, logs.ByProxy, h.bytes(e.Reason)
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
func (h head) Place() (route, customer string) { return "", "" }
