package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
)

// endpoints send each attempt to one of a cluster's. They are an
// [http.RoundTripper].
type endpoints struct {
	all    []*endpoint
	scheme string
	plain  *http.Transport // HTTP/1.1, or what TLS negotiates
	second *http.Transport // HTTP/2 in the clear; nil: not spoken
	always bool            // it is all that is spoken
	least  bool            // the least busy of all gets the next attempt: places are few
	each   int             // connections of plain to each endpoint
}

// An endpoint is one address.
type endpoint struct {
	address string
	health  health
	busy    atomic.Int64 // attempts under way
	failed  atomic.Int64 // when it last could not be connected to, in nanoseconds since 1970
	lost    atomic.Bool  // it has answered nothing since
	total   atomic.Uint64
}

// avoid is for how long an endpoint that could not be connected to gets nothing, if
// there are others. It shows as one that cannot be connected to for longer, as it is
// tried again and again.
const (
	avoid = time.Second
	lose  = 10 * time.Second
)

func newEndpoints(x *config.Cluster, secured *tls.Config) *endpoints {
	e := &endpoints{scheme: "http", each: x.MaxConnections, always: x.Protocol == "http2" && secured == nil}
	for _, address := range x.Endpoints {
		e.all = append(e.all, &endpoint{address: address})
	}
	second := x.MaxConnections
	if x.Batch != nil {
		e.least = true
		e.each = x.Batch.Connections / len(e.all)
		if second = e.each; secured == nil && x.Protocol == "auto" {
			e.each, second = e.each-1, 1
		}
	}
	e.plain = newTransport(x, e.each)
	if secured != nil {
		e.scheme, e.plain.TLSClientConfig = "https", secured
		e.plain.Protocols.SetHTTP1(x.Protocol != "http2")
		e.plain.Protocols.SetHTTP2(x.Protocol != "http1")
		return e
	}
	e.plain.Protocols.SetHTTP1(true)
	if x.Protocol != "http1" {
		e.second = newTransport(x, second)
		e.second.Protocols.SetUnencryptedHTTP2(true)
	}
	return e
}

// maxAnswerHead is how long the head of an answer may be.
const maxAnswerHead = 1 << 20

func newTransport(x *config.Cluster, connections int) *http.Transport {
	connections = max(0, connections) // where negative and zero are no limit
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: x.ConnectTimeout}).DialContext,
		TLSHandshakeTimeout:    x.ConnectTimeout,
		MaxConnsPerHost:        connections,
		MaxIdleConnsPerHost:    max(connections, 64),
		IdleConnTimeout:        x.IdleTimeout,
		ResponseHeaderTimeout:  x.ResponseTimeout,
		MaxResponseHeaderBytes: maxAnswerHead,
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

// places returns how many requests can be under way, each on a connection of its
// own.
func (e *endpoints) places() int { return e.each * len(e.all) }

// RoundTrip implements [http.RoundTripper].
func (e *endpoints) RoundTrip(r *http.Request) (*http.Response, error) {
	t, call := e.plain, isGRPC(r)
	if e.second != nil && (e.always || call) {
		t = e.second
	}
	if len(e.all) == 1 && !call {
		x := e.all[0]
		x.total.Add(1)
		r = e.aim(r, x)
		resp, err := t.RoundTrip(r)
		if err != nil {
			x.missed(r, err)
			return nil, err
		}
		x.found()
		return resp, nil
	}
	tried, _ := r.Context().Value(trailKey{}).(*trail)
	x := e.pick(tried)
	r = e.aim(r, x)
	x.total.Add(1)
	x.busy.Add(1)
	resp, err := t.RoundTrip(r)
	if err != nil {
		x.busy.Add(-1)
		if x.missed(r, err) {
			tried.add(x)
		}
		return nil, err
	}
	x.found()
	if refuses(resp) || call && refusesCall(resp) {
		tried.refused(resp)
		tried.add(x)
	}
	x.hold(resp)
	return resp, nil
}

// missed takes note of an attempt that got no answer, and reports whether x could not
// be connected to.
func (x *endpoint) missed(r *http.Request, err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "dial" || r.Context().Err() != nil {
		return false
	}
	x.failed.Store(time.Now().UnixNano())
	x.lost.Store(true)
	return true
}

// found takes note of an answer.
func (x *endpoint) found() {
	if x.lost.Load() {
		x.lost.Store(false)
	}
}

// aim returns r as it is sent to x. r is not changed. It may have been made for an
// endpoint of the configuration before.
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

// refuses reports whether an answer says that the endpoint has no room.
func refuses(resp *http.Response) bool {
	return resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == 529 || resp.StatusCode >= 400 && resp.Header["X-Envoy-Overloaded"] != nil
}

// pick returns the endpoint for the next attempt of a request.
func (e *endpoints) pick(tried *trail) *endpoint {
	since, panics := time.Now().Add(-avoid).UnixNano(), e.panics()
	well := func(x *endpoint) bool { return panics || x.health.is() != Unhealthy }
	for _, fit := range []func(*endpoint) bool{
		func(x *endpoint) bool { return x.failed.Load() < since && !tried.has(x) && well(x) },
		func(x *endpoint) bool { return !tried.has(x) && well(x) },
		well,
	} {
		if x := e.choose(fit); x != nil {
			return x
		}
	}
	return e.choose(func(*endpoint) bool { return true })
}

// panics reports whether no endpoint passes its checks.
func (e *endpoints) panics() bool {
	for _, x := range e.all {
		if x.health.is() != Unhealthy {
			return false
		}
	}
	return true
}

// inherit takes over what is known of endpoints that were there before.
func (e *endpoints) inherit(old *endpoints) {
	for _, x := range e.all {
		for _, o := range old.all {
			if o.address == x.address {
				x.failed.Store(o.failed.Load())
				x.lost.Store(o.lost.Load())
				x.health.state.Store(o.health.state.Load())
			}
		}
	}
}

// choose returns the less busy one of two that fit, or where places are few the least
// busy one of all; nil if none fits.
func (e *endpoints) choose(fit func(*endpoint) bool) *endpoint {
	var two [2]*endpoint // a sample of those seen
	seen := 0
	for _, x := range e.all {
		if !fit(x) {
			continue
		}
		at := seen
		switch {
		case e.least:
			at = 1
		case seen >= len(two):
			at = rand.IntN(seen + 1)
		}
		if seen++; at < len(two) {
			two[at] = x
		}
		if e.least {
			two[0] = lessBusy(two[0], x)
		}
	}
	if !e.least && rand.IntN(2) == 0 { // where both are as busy, neither is always first
		return lessBusy(two[1], two[0])
	}
	return lessBusy(two[0], two[1])
}

// lessBusy returns the less busy one of two, of which there may be only one.
func lessBusy(a, b *endpoint) *endpoint {
	if a == nil || b != nil && b.busy.Load() < a.busy.Load() {
		return b
	}
	return a
}

func (e *endpoints) close() {
	e.plain.CloseIdleConnections()
	if e.second != nil {
		e.second.CloseIdleConnections()
	}
}

// EndpointStats says how an endpoint stands.
type EndpointStats struct {
	Address string
	Busy    int    // attempts under way, where there are several endpoints
	Total   uint64 // attempts
	Failed  bool   // it could not be connected to of late, and has answered nothing since

	Health                   Health // by its checks
	ChecksTotal, FailedTotal uint64 // checks that have ended, and those of them that failed
	Reason                   string // of the last check that failed
}

func (e *endpoints) stats(now time.Time) []EndpointStats {
	all := make([]EndpointStats, 0, len(e.all))
	for _, x := range e.all {
		s := EndpointStats{
			Address: x.address, Busy: int(x.busy.Load()), Total: x.total.Load(), Failed: x.lost.Load() && x.failed.Load() >= now.Add(-lose).UnixNano(),
			Health: x.health.is(), ChecksTotal: x.health.checks.Load(), FailedTotal: x.health.bad.Load(),
		}
		if reason := x.health.reason.Load(); reason != nil {
			s.Reason = *reason
		}
		all = append(all, s)
	}
	return all
}

// A trail is what there is to know of earlier attempts of a request.
type trail struct {
	endpoints []*endpoint // that had no room
	body      *replay     // of a call of gRPC, if it can be sent again
	final     bool        // the last answer was given a header that says don't retry
}

type trailKey struct{}

func (t *trail) add(x *endpoint) {
	if t != nil {
		t.endpoints = append(t.endpoints, x)
	}
}

func (t *trail) has(x *endpoint) bool { return t != nil && slices.Contains(t.endpoints, x) }

// hold counts an attempt as under way until its answer has ended.
func (x *endpoint) hold(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		x.busy.Add(-1)
		return
	}
	h := &held{ReadCloser: resp.Body, endpoint: x}
	resp.Body = h
	if w, ok := h.ReadCloser.(io.Writer); ok { // a protocol was switched to: both may talk
		resp.Body = &duplex{h, w}
	}
}

// held is the body of an answer.
type held struct {
	io.ReadCloser
	endpoint *endpoint
	ended    atomic.Bool
}

// Read implements [io.Reader].
func (h *held) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil {
		h.end()
	}
	return n, err
}

// Close implements [io.Closer].
func (h *held) Close() error {
	defer h.end()
	return h.ReadCloser.Close()
}

func (h *held) end() {
	if h.ended.CompareAndSwap(false, true) {
		h.endpoint.busy.Add(-1)
	}
}

// duplex is a body that can be written to.
type duplex struct {
	*held
	io.Writer
}
