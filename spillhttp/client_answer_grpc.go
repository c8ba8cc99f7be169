package spillhttp

import (
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/hints"
)

// failureOfGRPC returns the failure that a gRPC rejection means: a status instead of headers,
// with nothing after it. The caller handles a status that comes after an answer has begun, and
// any status that is not about capacity. gRPC has a retry delay for clients, which they read
// from such a rejection only.
func failureOfGRPC(h http.Header) (f fault.Failure, failed bool) {
	if !isGRPC(first(h, "Content-Type")) {
		return f, false
	}
	switch first(h, headerGRPCStatus) {
	case grpcBusy[0]:
		f.Party = fault.Server
	case grpcExhausted[0]: // the customer's fault, so no retry unless a hint invites one
		if tooLarge(first(h, headerGRPCMessage)) {
			return f, false
		}
		f.Party, f.Scope = fault.Client, fault.ScopeCustomer
	default:
		return f, false
	}
	f.Overload = true
	listen(&f, h)
	if values := h[headerGRPCPushback]; len(values) > 0 {
		f.RetryAfter, f.HasRetryAfter = hints.Pushback(values)
		f.DontRetry = f.DontRetry || !f.HasRetryAfter
	}
	if f.HasRetryAfter && f.Safety == fault.RetryUnknown {
		f.Safety = fault.RetrySafe
	}
	return f, true
}

// tooLarge tells a message that is too large from a quota that is used up, for
// which implementations of gRPC have the same status.
func tooLarge(message string) bool {
	return strings.Contains(message, "larger than max") || strings.Contains(message, "exceeds maximum size")
}
