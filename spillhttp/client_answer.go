package spillhttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/hints"
)

// suspect reports whether an answer may be a failure. Headers are read only where
// it may: a hint with any other answer is ignored.
func suspect(status int, h http.Header) bool {
	return status >= 400 || status == http.StatusOK && has(h, headerGRPCStatus)
}

// failureOf returns what an answer that is suspect, received at now, means to
// a caller that might retry, and whether it is a failure at all.
func failureOf(status int, h http.Header, now time.Time) (f fault.Failure, failed bool) {
	if !suspect(status, h) {
		return fault.Failure{}, false
	}
	if status < 400 {
		return failureOfGRPC(h)
	}
	f, failed = ofStatus(status)
	if told := listen(&f, h); !failed && !told {
		return fault.Failure{}, false // the request was wrong; there is nothing wrong with the backend
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

// ofStatus returns what a status above 399 says by itself.
func ofStatus(status int) (f fault.Failure, failed bool) {
	switch status {
	case http.StatusServiceUnavailable, 529: // 529 "overloaded" is a convention of some large services
		return fault.Failure{Overload: true, Party: fault.Server}, true
	case http.StatusTooManyRequests: // the customer's fault, so no retry unless a hint invites one
		return fault.Failure{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}, true
	case http.StatusGatewayTimeout:
		return fault.Failure{Timeout: true, Party: fault.Server}, true
	case http.StatusRequestTimeout: // the server stopped waiting for the rest of the request
		return fault.Failure{}, true
	case http.StatusTooEarly: // RFC 8470: refused because it could be a replay, which the load does not matter for
		return fault.Failure{Unprocessed: true, Party: fault.Client}, true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates, http.StatusInsufficientStorage,
		http.StatusLoopDetected, http.StatusNotExtended, http.StatusNetworkAuthenticationRequired: // will not change
		return fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}, true
	}
	if status >= 500 {
		return fault.Failure{Party: fault.Server}, true
	}
	return fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}, false
}

// listen adds to f what the server says of retries and overload, and reports
// whether it said anything. Where it says both, no is final.
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
	if has(h, headerScope) && scoped(f, fault.ParseScope(strings.TrimSpace(first(h, headerScope)))) {
		told = true
	}
	if says(h, "false", headerShouldRetry, headerStripe) {
		f.DontRetry = true
	}
	return told
}

// scoped adds to f the scope that the server names, and reports whether it counts. A rejection
// of a customer keeps its scope, whatever the header says.
func scoped(f *fault.Failure, s fault.Scope) bool {
	switch {
	case s == fault.ScopeUnknown, f.Scope == fault.ScopeCustomer:
		return false
	case s == fault.ScopeService:
		f.DontRetry = true
	case s == fault.ScopeTask:
		f.Unprocessed = true
	}
	f.Overload, f.Scope = true, s
	return true
}

// retryAfter returns how long the answer with header h, received at now, asks to
// be left alone. The finer Retry-After-Ms is believed before Retry-After. What
// is not valid is ignored.
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	if d, ok = hints.Units(first(h, headerRetryAfterMs), time.Millisecond); ok {
		return d, true
	}
	return hints.RetryAfter(first(h, headerRetryAfter), now)
}
