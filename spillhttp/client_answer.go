package spillhttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/hints"
)

// suspect reports whether an answer may be a failure. Hints in the headers of other answers are
// ignored.
func suspect(status int, h http.Header) bool {
	return status >= 400 || status == http.StatusOK && has(h, headerGRPCStatus)
}

// failureOf returns what an answer, received at now, means to a caller that might retry, and
// whether it is a failure at all.
func failureOf(status int, h http.Header, now time.Time) (f fault.Failure, failed bool) {
	if !suspect(status, h) {
		return fault.Failure{}, false
	}
	if status < 400 {
		return failureOfGRPC(h)
	}
	f, failed = ofStatus(status)
	if told := listen(&f, h); !failed && !told {
		return fault.Failure{}, false // the request was wrong, and the backend is well
	}
	f.RetryAfter, f.HasRetryAfter = retryAfter(h, now)
	switch {
	case status != http.StatusTooManyRequests && !has(h, headerRateLimited):
	case f.HasRetryAfter && f.Safety == fault.RetryUnknown:
		f.Safety = fault.RetrySafe
	case !f.HasRetryAfter && has(h, headerRateLimited):
		f.DontRetry = true
	}
	return f, true
}

// ofStatus returns what a status above 399 means without any header.
func ofStatus(status int) (f fault.Failure, failed bool) {
	switch status {
	case http.StatusServiceUnavailable, 529: // some large services use 529 for "overloaded"
		return fault.Failure{Overload: true, Party: fault.Server}, true
	case http.StatusTooManyRequests: // the customer sent too much: no retry without a hint
		return fault.Failure{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}, true
	case http.StatusGatewayTimeout:
		return fault.Failure{Timeout: true, Party: fault.Server}, true
	case http.StatusRequestTimeout: // the server stopped waiting for the rest of the request
		return fault.Failure{}, true
	// RFC 8470: rejected because it could be a replay. That has nothing to do with load.
	case http.StatusTooEarly:
		return fault.Failure{Unprocessed: true, Party: fault.Client}, true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates, http.StatusInsufficientStorage,
		// A retry gets the same answer.
		http.StatusLoopDetected, http.StatusNotExtended, http.StatusNetworkAuthenticationRequired:
		return fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}, true
	}
	if status >= 500 {
		return fault.Failure{Party: fault.Server}, true
	}
	return fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}, false
}

// listen adds to f what the headers say about retries and overload, and reports whether they say
// anything. If they say both yes and no to a retry, no wins.
func listen(f *fault.Failure, h http.Header) (told bool) {
	if says(h, "true", headerShouldRetry, headerStripe) {
		f.Safety, told = fault.RetrySafe, true
	}
	if has(h, headerOverloaded) {
		f.Overload, f.Unprocessed, told = true, true, true
	}
	if has(h, headerNack) {
		f.Overload, f.Unprocessed, f.Safety, told = true, true, fault.RetrySafe, true
	}
	if has(h, headerFinalNack) {
		f.Overload, f.Unprocessed, f.DontRetry, told = true, true, true, true
	}
	if has(h, headerRateLimited) {
		f.Overload, f.Scope, told = true, fault.ScopeCustomer, true
	}
	// A rejection of a customer keeps its scope, whatever the header says.
	if scope := strings.TrimSpace(first(h, headerScope)); fault.ParseScope(scope) != fault.ScopeUnknown && f.Scope != fault.ScopeCustomer {
		f.Overload, told = true, true
		hints.Scope(f, scope)
	}
	if says(h, "false", headerShouldRetry, headerStripe) {
		f.DontRetry = true
	}
	f.TooLate = f.Overload && first(h, headerReason) == spillway.ReasonDeadline.String()
	return told
}

// retryAfter returns how long the client should wait, by the header h of an answer received at now.
// Retry-After-Ms is more exact, so it comes before Retry-After. Invalid values are ignored.
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	if d, ok = hints.Units(first(h, headerRetryAfterMs), time.Millisecond); ok {
		return d, true
	}
	return hints.RetryAfter(first(h, headerRetryAfter), hints.SentAt(h, now))
}

// failureOfGRPC returns the failure that a gRPC rejection means. Such an answer has a status in its
// headers, and nothing after them; gRPC clients read the retry delay only from these. A status that
// follows an answer, or that is not about capacity, is left to the caller.
func failureOfGRPC(h http.Header) (f fault.Failure, failed bool) {
	if !isGRPC(first(h, "Content-Type")) {
		return f, false
	}
	switch first(h, headerGRPCStatus) {
	case grpcBusy[0]:
		f.Party = fault.Server
	case grpcExhausted[0]: // the customer sent too much: no retry without a hint
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

// tooLarge reports whether a message says that a call was too large. Implementations of gRPC use
// the status of an exhausted quota for that, too.
func tooLarge(message string) bool {
	return strings.Contains(message, "larger than max") || strings.Contains(message, "exceeds maximum size")
}
