package spillhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/late"
	"github.com/seed90641741/spillway/internal/longheads"
	"github.com/seed90641741/spillway/internal/serving"
)

// HandlerConfig configures a [Handler]. The zero HandlerConfig is ready for use: it sheds by
// criticality when the process is overloaded, and trusts no client.
type HandlerConfig struct {
	// Ingress makes the decisions. All handlers of a process should share one Server, whose Update
	// changes trust, modes and limits at any time. Nil means a Server with the zero
	// [ingress.Config], which [Handler.Close] closes.
	Ingress *ingress.Server
	// Classify returns what the server itself knows about a request: the class of the route, the
	// customer after authentication, a deadline of the server. It must be quick and safe for
	// concurrent use, and must not change or keep the request. It may be called twice for a
	// request: the first time with the head only, and without the context of the server. Nil means
	// that nothing is known.
	Classify func(*http.Request) spillway.Call
	// Route names the route of a request: each route has a separate concurrency limit. The rules
	// for Classify hold for Route, too. It is called only if Classify has set no Key. Nil means
	// r.Pattern, which a router in front of the Handler has set, or else the pattern that matches,
	// if the next handler is an [http.ServeMux]. For a mux behind other handlers, and for other
	// routers, ask the router here:
	//
	//	Route: func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern }
	//
	// Clients must not be able to choose routes freely: do not use a path that contains the name of
	// an object. Routes beyond [concurrency.Config.MaxKeys] share one limit.
	Route func(*http.Request) string
	// Identity returns the authenticated identity of the caller, or ""; never an unverified claim.
	// The rules for Classify hold for Identity, too. Nil means the first URI, else the first DNS
	// name, else the common name of a verified client certificate.
	Identity func(*http.Request) string
	// HealthPaths are paths of health checks, such as "/healthz", which bypass the Handler: a busy
	// server must not look dead. A request matches only with the whole path, written without
	// escapes. Any client can request them without limit, so they must be cheap to serve. If the
	// Check method of the gRPC health service is listed, its Watch bypasses the Handler, too.
	HealthPaths []string
	// Exempt reports whether a request bypasses the Handler, in addition to requests to
	// HealthPaths. The rules for Classify hold for Exempt, too. Nil means [DefaultExempt] at an
	// internal boundary, and no further exemptions at an edge.
	Exempt func(*http.Request) bool
}

// DefaultExempt reports whether a request is a health check, by its path: /healthz, /livez,
// /readyz, or the health service of gRPC. Metrics are not exempt: they cost more than most
// requests.
func DefaultExempt(r *http.Request) bool {
	return r.URL.RawPath == "" && slices.Contains(healthPaths, r.URL.Path)
}

// healthPaths are the paths for DefaultExempt.
var healthPaths = []string{"/healthz", "/livez", "/readyz", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}

// A Handler is an [http.Handler] that protects another one from more requests than it can serve. It
// is safe for concurrent use. Make one with [NewHandler].
type Handler struct {
	next     http.Handler
	mux      *http.ServeMux // next, if its patterns name the routes; otherwise nil
	config   HandlerConfig
	ingress  *ingress.Server
	owned    serving.Owned // set if NewHandler made ingress
	clock    clock.Clock
	closer   *closer
	plain    bool         // no func of config is set, so a decision needs little of r
	looks    atomic.Int64 // how many more requests a Listener examines
	exempted atomic.Uint64
	panicked late.Panic // a panic of the user's code during an early decision
	heads    sync.Mutex // held while MaxHeaderBytes of a server is set

	// bodyLength is the method lengthOf: making a func value for each request would allocate.
	bodyLength func(spillway.Reason) int
}

// lookOn is the number of requests that a [Listener] examines after the last rejection for
// overload. At other times it examines none.
const lookOn = 1000

// NewHandler returns a Handler in front of next. An error names the argument or field that is
// wrong.
func NewHandler(next http.Handler, c HandlerConfig) (*Handler, error) {
	if next == nil {
		return nil, invalid.Field("spillhttp", "next", nil, "a Handler")
	}
	for i, path := range c.HealthPaths {
		if u, err := url.Parse(path); err != nil || u.Path != path || path == "" || path[0] != '/' {
			return nil, invalid.Field("spillhttp", fmt.Sprintf("HealthPaths[%d]", i), path, "a path such as /healthz, without escapes or a query")
		}
	}
	c.HealthPaths = claims.Health(c.HealthPaths)
	h := &Handler{config: c, closer: new(closer)}
	h.closer.paced()
	h.bodyLength = h.lengthOf
	var err error
	h.ingress, h.owned, err = serving.Own("spillhttp", c.Ingress)
	if err != nil {
		return nil, err
	}
	return h.before(next), nil
}

// Middleware returns a func that puts a [Handler] in front of another handler, as routers expect
// it. An error names the field of c that is wrong. All handlers that the func makes share one
// [ingress.Server]: that of c, or else a new one with the zero [ingress.Config], which is never
// closed. Set HandlerConfig.Ingress if you must close it.
//
// Put it outside of all other middleware except panic recovery and request logging, so that a
// rejected request costs nothing else. A nil next handler means [http.DefaultServeMux], as in an
// [http.Server].
//
// A [Listener] needs a [Handler]: use NewHandler for early rejections.
func Middleware(c HandlerConfig) (func(next http.Handler) http.Handler, error) {
	// This checks c, so the func below cannot fail.
	first, err := NewHandler(http.NotFoundHandler(), c)
	if err != nil {
		return nil, err
	}
	// Some routers make a Handler for each request, so this must be cheap.
	return func(next http.Handler) http.Handler {
		if next == nil {
			next = http.DefaultServeMux
		}
		return (&Handler{config: first.config, ingress: first.ingress, closer: first.closer}).before(next)
	}, nil
}

// before puts h in front of next, and returns h.
func (h *Handler) before(next http.Handler) *Handler {
	h.next = next
	c := &h.config
	if c.Route == nil {
		h.mux, _ = next.(*http.ServeMux)
	}
	h.plain = h.mux == nil && c.Classify == nil && c.Route == nil && c.Identity == nil && c.Exempt == nil
	return h
}

// unseen reports whether a request bypasses the Handler.
func (h *Handler) unseen(r *http.Request) bool {
	if r.URL.RawPath == "" && slices.Contains(h.config.HealthPaths, r.URL.Path) {
		return true
	}
	if h.config.Exempt != nil {
		return h.config.Exempt(r)
	}
	return h.ingress.Trust().Boundary == ingress.Internal && DefaultExempt(r)
}

// Close closes the [ingress.Server] that [NewHandler] has made. Call it when the last request has
// ended. It does not close HandlerConfig.Ingress.
func (h *Handler) Close() error { return h.owned.Close() }

// ServeHTTP implements [http.Handler]. Either the next handler serves the request, with a context
// that carries its criticality and deadline, or the Handler rejects it. A panic of the next handler
// passes through.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	longheads.Began(r)
	if h.unseen(r) {
		h.exempted.Add(1)
		h.next.ServeHTTP(w, r)
		return
	}
	h.panicked.GoOn()
	prepareStack(r)
	now := h.clock.Now()
	var a arrival
	h.judge(now, r, &a)
	h.find(r, &a.Caller)
	if ratio := h.ingress.AcceptRatio(a.Call.Criticality); ratio != "" {
		w.Header()[headerAcceptRatio] = []string{ratio}
	}
	if place := h.admit(now, w, r, &a); place != nil {
		h.serve(now, w, r, &a, place)
	}
}

// admit returns the slot of an admitted request. It answers a rejected one, and returns nil.
func (h *Handler) admit(now time.Time, w http.ResponseWriter, r *http.Request, a *arrival) *ingress.Slot {
	place, ctx, ahead := slots.Get().(*ingress.Slot), r.Context(), h.aheadOf(r)
	if ahead != nil {
		r.Body, ctx = ahead, ahead
	}
	if rejection := place.EnterAt(ctx, h.ingress, now, &a.Call, &a.Caller); rejection.Rejected() {
		slots.Put(place)
		h.reject(now, w, r, &rejection)
		ahead.join()
		return nil
	}
	if place.Waited() {
		h.closer.waited(now, w, r)
	}
	return place
}

// serve lets the next handler serve an admitted request.
func (h *Handler) serve(now time.Time, w http.ResponseWriter, r *http.Request, a *arrival, place *ingress.Slot) {
	x := h.visitOf(w, r, a, place)
	p := x.response.slot
	returned := false
	meter := p.Measure()
	defer func() {
		outcome := spillway.OutcomeFailed
		end := now.Add(time.Since(now)) // this reads one clock; time.Now reads two
		meter.End()
		err := x.End(end)
		// net/http removes the files of the form that it finds in r; others read the pattern from
		// it.
		r.MultipartForm, r.Pattern = x.request.MultipartForm, x.request.Pattern
		if returned || err != nil { // a proxy may panic because its client has left, which is no failure
			outcome = outcomeOf(err, int(x.response.code))
		}
		x.response.returned()
		p.DoneAt(end, outcome)
		unshared := x.response.late.End()
		if unshared {
			x.response.slot = nil
		}
		if unshared || p != place {
			slots.Put(place)
		}
	}()
	h.next.ServeHTTP(x.response.writer(r), &x.request)
	returned = true
}

// slots is a pool of slots, for requests without a body and for rejected requests. A slot is reused
// when the handler has returned, since nothing is written to the answer after that. Requests with a
// body have their own slot: a handler that sends the body elsewhere may still read it then.
var slots = sync.Pool{New: func() any { return new(ingress.Slot) }}

// reject answers a rejected request.
func (h *Handler) reject(now time.Time, w http.ResponseWriter, r *http.Request, why *ingress.Rejection) {
	if why.Outcome == spillway.OutcomeOverloaded {
		h.busy()
		if h.closer.closes(now, r) && why.Scope() == fault.ScopeTask {
			w.Header()["Connection"] = valueClose // for HTTP/2, net/http sends a GOAWAY
		}
	}
	reject(w, r, why, h.wordingOf(why))
	if r.ProtoMajor == 1 && streamed(r) {
		// net/http reads the rest of a short body before it answers. If the rest does not arrive at
		// once, the connection is closed. An error does not matter: a writer without deadlines
		// closes it.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
	}
}

// unreadTime is the maximum time to read the rest of the body of a rejected request. It is enough
// for data that was sent together with the headers.
const unreadTime = 50 * time.Millisecond

// busy records a rejection for overload, so that a Listener examines the next requests.
func (h *Handler) busy() {
	if h.looks.Load() < lookOn { // a write would cost other processors the cache line
		h.looks.Store(lookOn)
	}
}

// early decides on a request when only its head has arrived. ctx is for the Event.
func (h *Handler) early(ctx context.Context, now time.Time, a *arrival) ingress.Rejection {
	rejection := h.ingress.RejectAt(ctx, now, &a.Call, &a.Caller)
	if rejection.Outcome == spillway.OutcomeOverloaded {
		h.busy()
	} else {
		h.looks.Add(-1)
	}
	return rejection
}

// isHealth does the same as unseen, for a plain Handler.
func (h *Handler) isHealth(path []byte, trust *ingress.Trust) bool {
	same := func(health string) bool { return health == string(path) }
	return slices.ContainsFunc(h.config.HealthPaths, same) || trust.Boundary == ingress.Internal && slices.ContainsFunc(healthPaths, same)
}

// outcomeOf returns the outcome of a request, by the status of its answer and the error of its
// context, which may be nil.
func outcomeOf(err error, status int) spillway.Outcome {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return spillway.OutcomeTimedOut
	case err != nil:
		return spillway.OutcomeAbandoned
	case status >= http.StatusInternalServerError:
		return spillway.OutcomeFailed
	default:
		return spillway.OutcomeServed
	}
}
