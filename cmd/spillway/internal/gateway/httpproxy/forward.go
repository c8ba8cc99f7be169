package httpproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
	"github.com/seed90641741/spillway/spillhttp"
)

func (p *Proxy) newForward(g *gate) *httputil.ReverseProxy {
	failures, err := loglimit.New(p.with.Logger, 1)
	p.impossible(err) // of a constant
	return &httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		Transport:      g.cluster,
		ModifyResponse: g.received,
		BufferPool:     buffers,
		ErrorLog:       slog.NewLogLogger(p.with.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			answer(w, r, err, g.comeBack(err))
			if a := ownOf(r, err); (a == errNotReached || a == errLate) && !errors.Is(err, spillway.ErrRejected) {
				failures.Warn("the upstream gave no answer", "cluster", g.key.cluster, "error", err)
			}
		},
	}
}

func (g *gate) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came, like the path: RFC 9110, section 7.7
	routes.Send(r.Out.URL, r.In)
	r.Out.URL.Scheme, r.Out.URL.Host = g.cluster.Current().Address()
	h := r.Out.Header
	a := accountingOf(r.In.Context())
	s := a.listener.settings.Load() // that of the gate may be another one, with other clients
	s.sendTrailer(r)
	if g.cluster.Current().Config.Protocol == "http2" { // which has no upgrades: the request is answered without one
		h.Del("Connection")
		h.Del("Upgrade")
	}
	internal := s.internal
	// The gate has evaluated these headers. The Transport sets them again on the outgoing request.
	h.Del("X-Request-Criticality")
	h.Del("X-Request-Level")
	h.Del("X-Request-Progress")
	h.Del("X-Envoy-Expected-Rq-Timeout-Ms")
	h.Del("X-Envoy-Attempt-Count")
	if internal {
		h["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	} else {
		message.Sanitize(h, s.table.Trusted)
	}
	message.Degrade(h, spillway.DegradationFrom(r.In.Context()), internal)
	h[message.RequestID] = a.id
	a.visit.inject(h)
	r.SetXForwarded()
	if internal { // the hop before has said how the client came
		for _, name := range [...]string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if values := r.In.Header[name]; len(values) > 0 {
				h[name] = values
			}
		}
	}
	if h["Grpc-Timeout"] != nil {
		if deadline, ok := r.In.Context().Deadline(); ok {
			left := max(time.Until(deadline).Milliseconds(), 1)
			h.Set("Grpc-Timeout", strconv.FormatInt(min(left, 99_999_999), 10)+"m")
		}
	}
}

// switches returns an error if an upstream switches protocols without a request to do so, or
// to another protocol than the requested one. The connection is then closed.
func switches(resp *http.Response) error {
	if asked := resp.Request.Header.Get("Upgrade"); asked == "" || !strings.EqualFold(resp.Header.Get("Upgrade"), asked) {
		return errors.New("the upstream has changed the protocol unasked")
	}
	message.Switch(resp.Header)
	asked := *resp.Request // after a POST net/http would give the answer a length: RFC 9110, section 8.6
	asked.Method, resp.Request = http.MethodGet, &asked
	return nil
}

// buffers are the buffers for copying bodies.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

const bufferSize = 32 << 10

type bufferPool struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

// Put implements [httputil.BufferPool].
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

// costHeader is the header in which an endpoint reports what a request has cost. It never leaves
// the proxy.
const costHeader = "X-Request-Cost"

// maxCost is the most that a report of an endpoint may say, as in the configuration.
const maxCost = 1e6

// charge charges what the route of a request costs in place of the cost of the quota.
func (g *gate) charge(r *http.Request) {
	a := accountingOf(r.Context())
	a.cost = 1
	if q := g.cluster.Current().Config.Quota; q != nil && q.Cost != 0 {
		a.cost = max(q.Cost, 0)
	}
	if of := a.to.Config.Cost; of != 0 {
		cost := max(of, 0)
		spillhttp.Charge(r.Context(), cost-a.cost)
		a.cost = cost
	}
}

// received takes the report of the cost out of an answer, and charges it where the cluster may
// report costs. It returns an error for an answer that must not be passed on.
func (g *gate) received(resp *http.Response) error {
	if resp.StatusCode < 100 || resp.StatusCode > 999 {
		return fmt.Errorf("the upstream has answered with the status %d", resp.StatusCode) // net/http would panic
	}
	if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		delete(resp.Header, "Content-Length") // which is for content: by HTTP/2 some clients wait for it
	}
	a := accountingOf(resp.Request.Context())
	s := a.listener.settings.Load()
	s.conceal(resp)
	s.receiveTrailer(resp)
	values := resp.Header[costHeader]
	delete(resp.Header, costHeader)
	a.upstreamAnswered()
	resp.Header[message.RequestID] = a.id
	if a.timer != nil && (resp.StatusCode == http.StatusSwitchingProtocols || message.IsEvents(resp.Header)) && a.timer.stop() {
		a.exchange.Untimed()
	}
	if len(values) == 1 && g.cluster.Current().Config.ReportsCost {
		if cost, err := strconv.ParseFloat(values[0], 64); err == nil && cost >= 0 && cost <= maxCost {
			spillhttp.Charge(resp.Request.Context(), cost-a.cost)
			a.cost = cost
		}
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return switches(resp)
	}
	return completed(resp)
}
