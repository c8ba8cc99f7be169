package spillhttp

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/retry"
)

// TransportConfig configures a [Transport]. The zero TransportConfig is ready for use: it has all
// client policies with their defaults, in front of [http.DefaultTransport].
type TransportConfig struct {
	// Base sends the attempts. Nil means the value of http.DefaultTransport when the Transport is
	// made. Base must not be a Transport of this package or have one below it: the attempts of both
	// would multiply.
	Base http.RoundTripper
	// Egress configures the policies. Each backend has its own throttle, in-flight limit and, if
	// Egress.Retry is nil, retry budget. Egress.Hedge applies to GET, HEAD and other safe requests.
	// With its Writes it applies to all idempotent requests whose body can be sent again. Requests
	// to switch protocols are not hedged.
	Egress egress.Config
	// MaxBackends is the number of backends for which the Transport keeps state: a few kilobytes
	// each. With a higher value, a client that calls many backends loses less state. Zero means
	// [egress.DefaultMaxBackends]; it must not be negative.
	MaxBackends int
	// Backend names the backend of a request. Requests to the same backend share a throttle and an
	// in-flight limit. Nil means the host and port of the URL.
	Backend func(*http.Request) string
	// Customer names the customer of a request. Requests of a customer that the backend rejects for
	// its quota (429) are throttled; requests of other customers are not. Nil means that no request
	// has a customer.
	Customer func(*http.Request) string
	// Route names the route of a request to a backend. If the backend does not accept requests of a
	// route that it served before, the route is throttled separately. The Transport keeps state for
	// 256 such routes of each backend; all other routes share one throttle. Nil means
	// [DefaultRoute]. Requests with the empty route are throttled by backend only. Route must be
	// quick and safe for concurrent use.
	Route func(*http.Request) string
	// External reports whether a request goes to a service of another organization. Such a request
	// is sent without criticality, attempt number and deadline, even if the caller set them, so
	// that the other organization does not see them. Nil means that no service is external.
	External func(*http.Request) bool
}

// A Transport is an [http.RoundTripper] that protects both the backend and the caller when the
// backend is overloaded. It is safe for concurrent use. Make one with [NewTransport].
type Transport struct {
	config  TransportConfig // with defaults for Base and Backend
	pool    *egress.Pool
	limits  bool // the base limits its connections (MaxConnsPerHost)
	hedging atomic.Bool
}

// NewTransport returns a Transport, or an error that names the field of c that is wrong.
func NewTransport(c TransportConfig) (*Transport, error) {
	if c.MaxBackends < 0 {
		return nil, invalid.Field("spillhttp", "MaxBackends", c.MaxBackends, "0 or more")
	}
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	if _, ok := c.Base.(*Transport); ok {
		return nil, invalid.Field("spillhttp", "Base", c.Base, "a RoundTripper that is no Transport: the attempts of two would multiply")
	}
	if c.Backend == nil {
		c.Backend = func(req *http.Request) string { return req.URL.Host }
	}
	pool, err := egress.NewPool(c.Egress, c.MaxBackends)
	if err != nil {
		return nil, invalid.In("spillhttp", "Egress", err)
	}
	t := &Transport{config: c, pool: pool, limits: limits(c.Base)}
	t.hedging.Store(c.Egress.Hedge != retry.HedgeConfig{})
	return t, nil
}

// Update changes the policies of a Transport in use, for all backends. An error names the field of
// c that is wrong, and nothing has changed then. The throttles keep their state, and calls in
// flight stay counted. A budget belongs to its strategy: pass the same Retry again to keep it. If
// Retry is nil, the Transport keeps its default strategy. Calls in flight end under the old
// configuration.
func (t *Transport) Update(c egress.Config) error {
	if err := t.pool.Update(c); err != nil {
		return invalid.In("spillhttp", "Egress", err)
	}
	t.hedging.Store(c.Hedge != retry.HedgeConfig{})
	return nil
}

// RoundTrip implements [http.RoundTripper]. It makes the call, in as many attempts as the policies
// admit, within the deadline of the request's context. It does not change req. It returns the last
// answer, whatever its status. The caller must close the body of the answer: until it is closed or
// read to its end, the request counts as in flight. For errors see the package comment.
//
// A request without a URL or a header goes straight to the base, which returns the error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil || req.Header == nil {
		return t.config.Base.RoundTrip(req)
	}
	ctx, key := req.Context(), t.config.Backend(req)
	x := exchange{transport: t, request: req, answered: req, own: ownOf(req.Header), internal: t.config.External == nil || !t.config.External(req)}
	x.label(ctx)
	call := spillway.Call{Key: key, Criticality: x.class}
	call.Kind, call.Idempotent = kindOf(req)
	if t.config.Customer != nil {
		call.Customer = t.config.Customer(req)
	}
	if t.hedging.Load() && mayHedge(req) {
		x.hedged = true
		return hedge(ctx, x, t.pool.For(key), call)
	}
	returned := false
	defer func() {
		if !returned {
			x.abandon()
		}
	}()
	err := t.pool.For(key).DoRoute(ctx, call, t.routeOf(req), func(ctx context.Context, a *egress.Attempt) error {
		_, err := x.send(ctx, a)
		return err
	})
	returned = true
	return x.end(err)
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Stats returns the state of the policies, by backend.
func (t *Transport) Stats(now time.Time) map[string]egress.Stats { return t.pool.Stats(now) }

// kindOf returns the kind of a call, and whether it is idempotent, by its method as defined in RFC
// 9110, section 9.2. A request with an idempotency key is idempotent, too: kindOf reads the headers
// that net/http recognizes.
func kindOf(req *http.Request) (kind spillway.Kind, idempotent bool) {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return spillway.KindRead, true
	case http.MethodPut, http.MethodDelete:
		return spillway.KindWrite, true
	default:
		return spillway.KindWrite, has(req.Header, "Idempotency-Key") || has(req.Header, "X-Idempotency-Key")
	}
}
