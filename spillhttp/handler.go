package spillhttp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
)

// HandlerConfig configures a [Handler]. The zero HandlerConfig is ready for use: it
// sheds by criticality when the process is overloaded, and trusts nobody.
type HandlerConfig struct {
	// Ingress decides. All that serves the same process should share one, whose
	// Trust, modes and limits can be changed at any time with its Update. Nil means
	// one of the zero [ingress.Config], which [Handler.Close] closes.
	Ingress *ingress.Server
	// Classify says what the server itself knows of a request: the class of the
	// route, the customer once it is authenticated, a deadline of its own. It must
	// be quick, safe for concurrent use, and neither change nor keep the request,
	// of which it may be shown only the head, and that twice. Nil means that
	// nothing is known.
	Classify func(*http.Request) spillway.Call
	// Identity returns who the caller has proven to be, or nothing; never what it
	// just says. It is called as Classify is. Nil means the first URI, else the
	// first DNS name, else the common name of a client certificate that was
	// verified.
	Identity func(*http.Request) string
	// Exempt reports whether a request passes unseen, as if there were no
	// Handler. It is called as Classify is. Nil means [DefaultExempt].
	Exempt func(*http.Request) bool
}

// DefaultExempt reports whether a request is one by which others watch the
// server: a busy server must not look dead. It goes by the paths /healthz,
// /livez, /readyz and /metrics, and the health service of gRPC.
func DefaultExempt(r *http.Request) bool {
	switch path := r.URL.Path; path {
	case "/healthz", "/livez", "/readyz", "/metrics":
		return true
	default:
		return strings.HasPrefix(path, "/grpc.health.v1.Health/")
	}
}

// A Handler is an [http.Handler] that protects another one from more requests
// than it can serve. It is safe for concurrent use; make one with [NewHandler].
type Handler struct {
	next     http.Handler
	ingress  *ingress.Server
	owned    bool
	classify func(*http.Request) spillway.Call
	identity func(*http.Request) string
	exempt   func(*http.Request) bool
	looks    atomic.Int64 // how many requests a Listener is to look at
}

// lookOn is how many requests a [Listener] looks at after the last that was
// refused for overload. Before the first and after these it looks at none.
const lookOn = 1000

// NewHandler returns a Handler in front of next, or an error that says what is
// wrong.
func NewHandler(next http.Handler, c HandlerConfig) (*Handler, error) {
	if next == nil {
		return nil, errors.New("spillhttp: next is nil, must be a Handler")
	}
	h := &Handler{next: next, ingress: c.Ingress, classify: c.Classify, identity: c.Identity, exempt: c.Exempt}
	if h.ingress == nil {
		var err error
		if h.ingress, err = ingress.New(ingress.Config{}); err != nil {
			return nil, fmt.Errorf("spillhttp: Ingress: %w", err)
		}
		h.owned = true
	}
	if h.identity == nil {
		h.identity = certified
	}
	if h.exempt == nil {
		h.exempt = DefaultExempt
	}
	return h, nil
}

// Close frees what [NewHandler] has made. Call it when the last request has
// ended. It does not close HandlerConfig.Ingress.
func (h *Handler) Close() error {
	if !h.owned {
		return nil
	}
	return h.ingress.Close()
}

// ServeHTTP implements [http.Handler]. It has the request served by the next
// handler, with a context that carries the criticality and the deadline that it
// was admitted with, or answers that it is not. A panic passes through.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.exempt(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	call, caller, labelled := h.judge(r)
	passage, refusal := h.ingress.Enter(r.Context(), call, caller)
	if refusal.Refused() {
		h.refuse(w, r, refusal)
		return
	}
	ctx, cancel := inherit(r.Context(), &call, labelled)
	outcome := spillway.Failed // unless the next handler returns
	defer func() {
		passage.Done(outcome)
		cancel()
	}()
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	response := responseTo(w, r)
	h.next.ServeHTTP(response, r)
	outcome = outcomeOf(ctx, response.status())
}

// judge returns the call that r is, with as much of its claims as is believed,
// and whether the calls that it causes are to be labelled. At an edge a label
// counts only if it has lowered the class: any other is dropped.
func (h *Handler) judge(r *http.Request) (call spillway.Call, caller ratelimit.Caller, labelled bool) {
	if h.classify != nil {
		call = h.classify(r)
	}
	trust := h.ingress.Trust()
	claims := claimsOf(r.Header)
	if trust.Boundary == ingress.Internal || call.Customer != "" { // else nobody wants to know
		claims.Attempt = attemptOf(r.Header)
	}
	caller.Identity = h.identity(r)
	if h.ingress.Limits() {
		caller.Application = first(r.Header, "User-Agent")
		caller.Addr = addressOf(r)
	}
	claims.Identity = caller.Identity
	var now time.Time
	if claims.Timeout > 0 {
		now = time.Now()
	}
	call = trust.Judge(now, call, claims)
	labelled = call.Criticality != spillway.Critical || claims.Labelled && trust.Boundary == ingress.Internal
	return call, caller, labelled
}

func addressOf(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddrPort(r.RemoteAddr) // what is no address matches no exemption
	return a.Addr()
}

// refuse answers a request that is not served.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, why ingress.Refusal) {
	if why.Reason == ingress.Overloaded {
		h.looks.Store(lookOn)
	}
	refuse(w, r, why)
}

// early decides on a request of which only the head has come.
func (h *Handler) early(r *http.Request) ingress.Refusal {
	if h.exempt(r) {
		return ingress.Refusal{}
	}
	call, _, _ := h.judge(r)
	refusal := h.ingress.Refuse(call)
	if refusal.Refused() {
		h.looks.Store(lookOn)
	} else {
		h.looks.Add(-1)
	}
	return refusal
}

// inherit returns the context by which outgoing calls inherit criticality and
// deadline, and what ends it.
func inherit(ctx context.Context, call *spillway.Call, labelled bool) (context.Context, context.CancelFunc) {
	if labelled {
		ctx = spillway.WithCriticality(ctx, call.Criticality)
	}
	if call.Deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, call.Deadline)
}

// outcomeOf tells what became of a request that was answered with a status.
func outcomeOf(ctx context.Context, status int) spillway.Outcome {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return spillway.TimedOut
	case err != nil:
		return spillway.Abandoned
	case status >= http.StatusInternalServerError:
		return spillway.Failed
	default:
		return spillway.Served
	}
}

// certified returns the name in the certificate of the client, if it was
// verified.
func certified(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ""
	}
	return nameOf(r.TLS.VerifiedChains[0][0])
}

func nameOf(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	default:
		return c.Subject.CommonName
	}
}
