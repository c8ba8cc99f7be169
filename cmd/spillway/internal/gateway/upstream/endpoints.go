package upstream

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// endpoints sends each attempt to one endpoint of a cluster. It is an
// [http.RoundTripper].
type endpoints struct {
	all    []*endpoint
	set    *balance.Set // of the endpoints, in the same order
	policy balance.Config
	scheme string
	plain  *http.Transport // HTTP/1.1
	second *http.Transport // HTTP/2; nil: not spoken
	checks *http.Transport // of health checks; nil: no checks
	always bool            // nothing else is spoken
	turns  handshakes      // of second
	each   int             // connections of plain to each endpoint
	work   *processor      // of the cluster
}

// An endpoint is one address, and what requests and checks have shown of it. It outlives changes of the
// configuration.
type endpoint struct {
	*balance.Endpoint
	address string
	health  health
	keeping keeping

	total   atomic.Uint64
	asked   atomic.Int64 // when the last attempt was sent, since the start of the set
	served  atomic.Int64 // when it last served one, likewise; 0: never
	failed  atomic.Int64 // when it last could not be connected to, likewise
	lost    atomic.Bool  // it has answered nothing since
	trouble atomic.Pointer[string]
	errors  atomic.Uint64 // attempts that failed
	answers atomic.Uint64 // heads of answers
	took    atomic.Int64  // the time of all of them

	reported reading // guarded by the processor of the cluster
}

// lose is how long an endpoint is reported as failed after a failed connection attempt. While
// requests arrive, it is tried repeatedly.
const lose = 10 * time.Second

func newEndpoints(x *config.Cluster, secured *tls.Config) *endpoints {
	e := &endpoints{scheme: "http", each: x.MaxConnections, always: x.Protocol == "http2", policy: x.Balancing(), work: new(processor)}
	for _, address := range x.Subset() {
		e.all = append(e.all, &endpoint{Endpoint: balance.NewEndpoint(), address: address, health: health{wake: make(chan struct{}, 1)}})
	}
	second := x.MaxConnections
	if x.Batch != nil {
		e.each = x.Batch.Connections / len(e.all)
		if second = e.each; x.Protocol == "auto" {
			e.each, second = e.each-1, 1
		}
	}
	e.assemble(time.Now())
	e.plain = newFirstTransport(x, e.each, secured)
	if secured != nil {
		e.scheme = "https"
	}
	if x.Protocol != "http1" {
		e.second = newSecondTransport(x, second, secured, &e.turns)
	}
	return e
}

// assemble makes the set of the endpoints. Its times count from start.
func (e *endpoints) assemble(start time.Time) {
	all := make([]*balance.Endpoint, 0, len(e.all))
	for _, x := range e.all {
		all = append(all, x.Endpoint)
	}
	e.set = balance.New(e.policy, start, all)
}

// Silent peers on HTTP/2 receive a PING.
const (
	PingAfter   = 30 * time.Second
	PingTimeout = 15 * time.Second
)

// maxAnswerHead is the maximum length of the headers of an answer.
const maxAnswerHead = 1 << 20

func newTransport(x *config.Cluster, connections int) *http.Transport {
	connections = max(0, connections) // where negative and zero are no limit
	return &http.Transport{
		DialContext:            noting((&net.Dialer{Timeout: x.ConnectTimeout}).DialContext),
		TLSHandshakeTimeout:    x.ConnectTimeout,
		MaxConnsPerHost:        connections,
		MaxIdleConnsPerHost:    max(connections, 64),
		IdleConnTimeout:        x.IdleTimeout,
		ResponseHeaderTimeout:  x.ResponseTimeout,
		MaxResponseHeaderBytes: maxAnswerHead,
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: PingAfter, PingTimeout: PingTimeout},
	}
}

// newFirstTransport is newTransport for HTTP/1.1.
func newFirstTransport(x *config.Cluster, connections int, secured *tls.Config) *http.Transport {
	t := newTransport(x, connections)
	t.Protocols.SetHTTP1(true)
	t.DialContext = firstConns(t.DialContext)
	if secured != nil {
		t.DialTLSContext = noting(firstConns(firstOverTLS(&net.Dialer{Timeout: x.ConnectTimeout}, secured)))
	}
	return t
}

// newSecondTransport is newTransport for HTTP/2. It connects in turns.
func newSecondTransport(x *config.Cluster, connections int, secured *tls.Config, turns *handshakes) *http.Transport {
	t := newTransport(x, connections)
	t.Protocols.SetUnencryptedHTTP2(true) // also where DialTLSContext has encrypted it
	t.DialContext = turns.inTurn(shortFrames(t.DialContext))
	if secured != nil {
		t.DialTLSContext = noting(turns.inTurn(shortFrames(overTLS(&net.Dialer{Timeout: x.ConnectTimeout}, secured))))
	}
	return t
}

// places returns the maximum number of requests in flight, each on a separate connection.
func (e *endpoints) places() int { return e.each * len(e.all) }

// A noter is the source of a request that notes where its attempts are sent.
type noter interface{ Sent(endpoint string) }

func (e *endpoints) RoundTrip(r *http.Request) (*http.Response, error) {
	t, call := e.plain, message.IsGRPC(r)
	if e.second != nil && (e.always || call) {
		t = e.second
	}
	start := time.Now()
	tried, _ := r.Context().Value(trailKey{}).(*trail)
	class := spillway.CriticalityFrom(r.Context())
	p := e.set.Pick(start, class, tried.avoided())
	x := e.all[p.Index]
	if n, ok := r.Context().Value(decisions.SourceKey{}).(noter); ok {
		n.Sent(x.address)
	}
	x.total.Add(1)
	x.asked.Store(int64(start.Sub(e.set.Start())))
	x.health.rouse()
	sent, place := await(e.aim(r, x), &x.keeping, t == e.plain)
	resp, err := t.RoundTrip(sent)
	now := time.Now()
	if err != nil {
		if r.Body != nil && sent.Body != r.Body {
			_ = r.Body.Close() // as a RoundTripper must
		}
		x.End()
		if rejected := rejectedHead(sent, err); rejected != nil {
			e.set.Answered(now, &p, balance.Answer{Outcome: spillway.OutcomeAbandoned, Class: class})
			return rejected, nil
		}
		err = place.explain(err)
		answer := errorOf(r.Context(), err, start, now)
		answer.Class = class
		e.set.Answered(now, &p, answer)
		if e.unanswered(now, x, answer, err); answer.Unreachable {
			tried.add(x)
		}
		return nil, err
	}
	place.restore(resp)
	x.answers.Add(1)
	x.took.Add(int64(now.Sub(start)))
	e.answered(now, x, &p, class, resp, tried, safe(r))
	e.hold(x, resp)
	return resp, nil
}

func (e *endpoints) unanswered(now time.Time, x *endpoint, a balance.Answer, err error) {
	if a.Failed {
		x.errors.Add(1)
	}
	if a.Unreachable {
		x.failed.Store(int64(now.Sub(e.set.Start())))
		x.lost.Store(true)
		x.trouble.Store(new(TroubleOf(err)))
	}
}

func (e *endpoints) answered(
	now time.Time, x *endpoint, p *balance.Pick, class spillway.Criticality, resp *http.Response, tried *trail, safe bool,
) {
	if x.lost.Load() {
		x.lost.Store(false)
	}
	said := read(resp, now)
	if said.failed {
		x.errors.Add(1)
	}
	e.set.Answered(now, p, balance.Answer{Outcome: said.outcome, Class: class, Hint: said.hint, Failed: said.failed})
	switch {
	case !said.rejected():
		if !said.failed {
			x.served.Store(max(int64(now.Sub(e.set.Start())), 1))
		}
	case tried != nil:
		tried.rejected(resp)
		tried.add(x)
		if said.elsewhere(safe) && e.set.Elsewhere(now, class, tried.avoided()) {
			tried.redirect(resp)
		}
	}
	e.report(now, x, resp.Header)
}

// safe reports whether a request may be sent again although an endpoint may have
// processed it: RFC 9110, section 9.2.2.
func safe(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

// report removes the load report from headers or trailers. It is hop-by-hop and not passed on
// to the client.
func (e *endpoints) report(now time.Time, x *endpoint, h http.Header) {
	if h[message.Header] == nil && h[message.HeaderBinary] == nil {
		return
	}
	wanted := e.set.Wants(now, x.Endpoint)
	if r, ok := message.TakeLoadReport(h, wanted); ok {
		e.take(now, x, r)
	}
}

func (e *endpoints) take(now time.Time, x *endpoint, r message.LoadReport) {
	e.set.Report(now, x.Endpoint, balance.Load{Application: r.Application, CPU: r.CPU, QPS: r.RPS, EPS: r.EPS})
	e.work.report(now, x, r)
}

// aim returns a copy of r that is addressed to x. r may have been made for an endpoint of a
// previous configuration.
func (e *endpoints) aim(r *http.Request, x *endpoint) *http.Request {
	if r.URL.Host == x.address && r.URL.Scheme == e.scheme {
		return r
	}
	aimed := &struct {
		request http.Request
		url     url.URL
	}{*r, *r.URL}
	aimed.url.Scheme, aimed.url.Host = e.scheme, x.address
	aimed.request.URL = &aimed.url
	return &aimed.request
}

// inherit takes over the endpoints that existed before, with their health if both versions check it, and
// starts new endpoints slowly. e must not be in use yet, and the health checks of the old endpoints must
// have stopped.
func (e *endpoints) inherit(old *endpoints, health bool) {
	known := make(map[string]*endpoint, len(old.all))
	for _, o := range old.all {
		known[o.address] = o
	}
	var fresh []*balance.Endpoint
	for i, x := range e.all {
		o := known[x.address]
		if o == nil {
			fresh = append(fresh, x.Endpoint)
			continue
		}
		e.all[i], o.health.row = o, 0
		if !health {
			o.health.state.Store(uint32(Unchecked))
			old.set.SetHealthy(time.Now(), o.Endpoint, true)
		}
	}
	e.assemble(old.set.Start())
	for _, x := range fresh {
		e.set.Ramp(time.Now(), x)
	}
}

// dial replaces the function that makes connections.
func (e *endpoints) dial(how DialFunc) {
	e.plain.DialContext = noting(firstConns(how))
	if e.second != nil {
		e.second.DialContext = noting(e.turns.inTurn(how))
	}
}

func (e *endpoints) close() {
	for _, t := range []*http.Transport{e.plain, e.second, e.checks} {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
}

// requested returns when the last attempt was sent to any endpoint, since the start of
// the set; 0 if there was none.
func (e *endpoints) requested() int64 {
	last := int64(0)
	for _, x := range e.all {
		last = max(last, x.asked.Load())
	}
	return last
}
