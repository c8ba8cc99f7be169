package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"syscall"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/hints"
	"github.com/seed90641741/spillway/retry"
)

// A verdict is the result of the headers of an answer.
type verdict struct {
	outcome spillway.Outcome // for the load of the endpoint
	scope   fault.Scope      // of a rejection; ScopeUnknown: this endpoint, as far as is known
	hint    time.Duration    // how long the endpoint asks to be left alone
	failed  bool             // it counts for outlier detection
	unsent  bool             // it proves that no work was done
}

// read returns the verdict of an answer. A status of gRPC counts if it is in the headers (a trailers-only
// answer).
func read(resp *http.Response, now time.Time) verdict {
	v, status, h, code := verdict{outcome: spillway.OutcomeServed}, resp.StatusCode, resp.Header, ""
	if values := h["Grpc-Status"]; status == http.StatusOK && values != nil {
		code = values[0]
	}
	switch {
	case status < 400 && code == "":
	case status == http.StatusTooManyRequests, code == "8", status >= 400 && h["X-Envoy-Ratelimited"] != nil: // RESOURCE_EXHAUSTED
		v.outcome, v.scope = spillway.OutcomeOverQuota, fault.ScopeCustomer
	case status == http.StatusServiceUnavailable, status == 529, code == "14", status >= 400 && h["X-Envoy-Overloaded"] != nil: // UNAVAILABLE
		v.outcome, v.scope, v.hint = spillway.OutcomeOverloaded, scopeOf(h), hintOf(h, now)
		v.unsent = v.scope == fault.ScopeTask || h["X-Envoy-Overloaded"] != nil || h["Finagle-Http-Nack"] != nil ||
			code != "" && h["Grpc-Retry-Pushback-Ms"] != nil
		// A rejection by a gate is no sign of a broken endpoint.
		v.failed = status >= 500 && h["X-Envoy-Overloaded"] == nil
		if v.scope == fault.ScopeCustomer {
			v.outcome = spillway.OutcomeOverQuota
		}
	case status == http.StatusGatewayTimeout, code == "4": // DEADLINE_EXCEEDED
		v.outcome, v.failed = spillway.OutcomeTimedOut, code == ""
	case status >= 500, code == "2", code == "13", code == "15": // UNKNOWN, INTERNAL, DATA_LOSS
		v.outcome, v.failed = spillway.OutcomeFailed, true
	}
	return v
}

// rejected reports whether the endpoint has rejected the attempt, before any work was done.
func (v *verdict) rejected() bool {
	return v.outcome == spillway.OutcomeOverloaded || v.outcome == spillway.OutcomeOverQuota
}

// scopeHeader is the header with the scope of a rejection.
const scopeHeader = "X-Overload-Scope"

// scopeTaskValue is its value for one task.
var scopeTaskValue = []string{"task"}

// scopeOf returns the scope of a rejection by its headers. "Don't retry" says that other tasks
// are overloaded, too.
func scopeOf(h http.Header) fault.Scope {
	for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
		if strings.EqualFold(strings.TrimSpace(h.Get(name)), "false") {
			return fault.ScopeService
		}
	}
	if v := h["Grpc-Retry-Pushback-Ms"]; len(v) > 0 {
		if _, ok := hints.Units(v[0], time.Millisecond); !ok {
			return fault.ScopeService
		}
	}
	return fault.ParseScope(strings.TrimSpace(h.Get(scopeHeader)))
}

// hintOf returns the retry hint of a rejection; zero without one.
func hintOf(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "Grpc-Retry-Pushback-Ms"} {
		if d, ok := hints.Units(h.Get(name), time.Millisecond); ok {
			return d
		}
	}
	d, _ := hints.RetryAfter(h.Get("Retry-After"), now)
	return d
}

// elsewhere reports whether a rejection is about the endpoint, so that another one may serve
// the request. safe says that the request may be retried in any case.
func (v *verdict) elsewhere(safe bool) bool {
	return v.scope == fault.ScopeTask || v.scope == fault.ScopeUnknown && (safe || v.unsent)
}

// errorOf returns the outcome of an attempt without an answer. A client that disconnected, that
// chose too short a deadline, or whose body had not come by then, says nothing about the endpoint. Nor does a
// request that did not get there.
func errorOf(ctx context.Context, err error, start, now time.Time) balance.Answer {
	_, waited := errors.AsType[noConnectionError](err)
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	op, connecting := errors.AsType[*net.OpError](err)
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case waited, errors.Is(err, spillway.ErrRejected), ctx.Err() != nil && !late, late && (claims.UntrustedExpired(ctx, start, now) || message.Late(ctx)):
		return balance.Answer{Outcome: spillway.OutcomeAbandoned}
	case connecting && op.Op == "dial" && !late:
		return balance.Answer{Outcome: spillway.OutcomeOverloaded, Failed: true, Unreachable: true}
	case untrusted(err):
		return balance.Answer{Outcome: spillway.OutcomeFailed, Failed: true, Unreachable: true}
	case late, ok && timeout.Timeout():
		return balance.Answer{Outcome: spillway.OutcomeTimedOut, Failed: true}
	}
	return balance.Answer{Outcome: spillway.OutcomeFailed, Failed: true}
}

// untrusted reports whether an endpoint did not prove its identity. Nothing was sent to it.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// TroubleOf returns a short reason why an endpoint could not be connected to. It has no
// addresses, so that endpoints with the same problem have the same text.
func TroubleOf(err error) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	name, isName := errors.AsType[*net.DNSError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired:
		return "its certificate has expired"
	case untrusted(err):
		return "its certificate is not trusted"
	case isName:
		return "its name cannot be resolved: " + name.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case isNet && timeout.Timeout():
		return "connection timed out"
	default:
		return "cannot be connected to"
	}
}

// FailureOf says why a request got no answer, and why it was not sent again. It has nothing that an
// endpoint has sent, which may be a secret: more people read an access log than an answer.
func FailureOf(err error) string {
	if stopped, ok := errors.AsType[*retry.Error](err); ok {
		return withoutAnswer(stopped.Err) + "; " + withoutAnswer(stopped.Why)
	}
	return withoutAnswer(err)
}

// withoutAnswer returns the text of an error without what the endpoint has sent: net/http quotes
// that, except in errors of type textproto.ProtocolError.
func withoutAnswer(err error) string {
	_, network := errors.AsType[*net.OpError](err)
	waited, isWait := errors.AsType[noConnectionError](err)
	malformed := textproto.ProtocolError("")
	switch {
	case errors.Is(err, spillway.ErrRejected), network:
	case isWait:
		return waited.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer before the deadline"
	case errors.As(err, &malformed):
		return "the answer is malformed"
	case untrusted(err):
		return TroubleOf(err)
	}
	text, _, _ := strings.Cut(err.Error(), `"`)
	return decisions.Clean(strings.TrimRight(text, " :=,"))
}
