package httpproxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/longheads"
	"github.com/seed90641741/spillway/spillhttp"
)

// What a request passes from its connection to its gate.

// early makes connections reject what the main gate would reject: the gate of the last route,
// which matches the most requests.
type early struct {
	net.Listener
	listener *listener
}

// Accept implements [net.Listener].
func (e *early) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	targets := e.listener.settings.Load().targets
	if len(targets) == 0 {
		return c, nil
	}
	return spillhttp.NewListener(single{e.Listener, c}, targets[len(targets)-1].gate.handler).Accept()
}

// single is a listener that has one connection.
type single struct {
	net.Listener
	conn net.Conn
}

// Accept implements [net.Listener].
func (s single) Accept() (net.Conn, error) { return s.conn, nil }

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	longheads.Began(r)
	open := l.users.Enter()
	if open {
		defer l.users.Leave() // when all logs have the request
	}
	came, cut, a := r.Context(), true, &accounting{listener: l, request: r}
	l.proxy.with.Accounts.Begin()
	s := l.settings.Load()
	a.id = message.Identify(r.Header, s.keepsID)
	w.Header()[message.RequestID] = a.id
	a.visit = l.visit(r, s)
	x, r := clients.NewExchange(w, r.WithContext(context.WithValue(came, decisions.SourceKey{}, a)), s.bounds)
	a.exchange = x
	defer func() {
		_, broken := errors.AsType[*clients.BodyError](context.Cause(r.Context()))
		end := a.close(broken || came.Err() != nil, cut)
		if end.At = s.counts; a.to != nil {
			end.At = a.to.counts
		}
		l.proxy.with.Accounts.End(end)
		if end.Account == accounts.Rejected && end.Reason >= accounts.MaxRequests {
			a.decided(end)
		}
		a.visit.end(a, end)
	}()
	defer x.End()
	if open {
		l.admit(x, r, s)
	} else {
		answer(x, r, errDraining, 0)
	}
	cut = false // the handler did not panic
}

// admit has a request pass the bounds of the listener.
func (l *listener) admit(x *clients.Exchange, r *http.Request, s *settings) {
	if err := s.admits(r); err != nil {
		answer(x, r, err, 0)
		return
	}
	if !l.clients.Begin(x) {
		answer(x, r, errBusy, time.Second)
		return
	}
	defer l.clients.End(x)
	if m := s.config.MaxBodyBytes; m > 0 {
		x.LimitBody(m)
	}
	l.pass(x, r)
}

// admits returns why a request is rejected on any route, or nil.
func (s *settings) admits(r *http.Request) error {
	switch m := s.config.MaxBodyBytes; {
	case r.Method == http.MethodConnect:
		return errTunnel
	case !wellFormed(r):
		return errMalformed
	case m > 0 && r.ContentLength > m:
		return &http.MaxBytesError{Limit: m}
	default:
		return s.table.Admits(r)
	}
}

// wellFormed reports whether net/http can send a request on. A server of net/http takes more, above all by HTTP/2, and what
// fails when it is sent looks like a failure of the upstream.
func wellFormed(r *http.Request) bool {
	for name := range r.Trailer {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
	}
	host, err := httpguts.PunycodeHostPort(r.Host)
	if r.Host == "" && r.ProtoAtLeast(1, 1) {
		return false // net/http would fill in the address of the endpoint
	}
	return err == nil && httpguts.ValidHostHeader(host) && httpguts.ValidHeaderFieldName(r.Method)
}

// shortBody is the longest body that is read before its request meets a gate, so that the
// request takes a place only when all of it is here: what most calls of an API have, and what
// is kept for retries by default.
const shortBody = 64 << 10

func (l *listener) pass(x *clients.Exchange, r *http.Request) {
	to := l.enter(r)
	if to == nil {
		answer(x, r, errNoRoute, 0)
		return
	}
	g := to.gate
	defer g.users.Leave()
	a := accountingOf(r.Context())
	a.to = to // before the request has policies
	x.Bound(to.bounds)
	to.Upgrade(r)
	if r.Header["Expect"] == nil { // else the client sends it only after the request was admitted
		if err := x.Body().ReadAhead(r, shortBody); err != nil {
			answer(x, r, err, 0)
			return
		}
	}
	if (x.Whole() || r.ContentLength == 0) && !to.Config.LatencyVaries {
		a.arrived = time.Now()
	}
	a.before = r.Context()
	g.requests.Add(1)
	if r.Header["X-Request-Criticality"] == nil {
		g.unlabelled.Add(1)
	}
	g.handler.ServeHTTP(x, r)
}

// enter returns the target of a request, or nil. The caller must leave its gate.
func (l *listener) enter(r *http.Request) *target {
	for {
		x := l.settings.Load().match(r)
		if x == nil {
			return nil
		}
		if x.gate.users.Enter() {
			return x
		}
		// The gate was closed since: there are other settings now.
	}
}
