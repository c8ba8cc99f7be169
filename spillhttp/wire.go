package spillhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// These are the headers of requests and answers, in canonical form. Their names follow existing
// conventions where there are any: Envoy, Finagle, Stripe, and the SDKs that Stainless generates.
const (
	// Headers of a request.
	headerCriticality = "X-Request-Criticality"
	// headerLevel is 1 to 128, the same for all calls of a task; our own.
	headerLevel = "X-Request-Level"
	// headerProgress is how many calls of the task were served, absent for 0; our own.
	headerProgress = "X-Request-Progress"
	headerAttempt  = "X-Envoy-Attempt-Count"          // 1 for the first attempt; hop by hop
	headerDeadline = "X-Envoy-Expected-Rq-Timeout-Ms" // what is left of the deadline; hop by hop

	// Headers of a request that are read; of these a Transport sends only Baggage.
	headerBaggage      = "Baggage"                    // W3C; may have members criticality, level and progress
	headerTrace        = "Traceparent"                // W3C; where no level is known, the trace has one
	headerSDKRequest   = "Amz-Sdk-Request"            // attempt=1 for the first attempt
	headerGRPCAttempts = "Grpc-Previous-Rpc-Attempts" // absent for the first attempt, 1 for the second
	headerGRPCTimeout  = "Grpc-Timeout"

	// Headers of an answer.
	headerRetryAfter   = "Retry-After"
	headerRetryAfterMs = "Retry-After-Ms"
	headerOverloaded   = "X-Envoy-Overloaded"
	headerScope        = "X-Overload-Scope"  // task, service or customer; our own
	headerReason       = "X-Overload-Reason" // overload, quota or the Reason; our own
	headerRateLimited  = "X-Envoy-Ratelimited"
	headerShouldRetry  = "X-Should-Retry"
	headerStripe       = "Stripe-Should-Retry"
	headerNack         = "Finagle-Http-Nack"
	headerFinalNack    = "Finagle-Http-Nonretryable-Nack"
	headerRateLimit    = "Ratelimit" // draft-ietf-httpapi-ratelimit-headers
	headerRequestID    = "X-Request-Id"

	// headerAcceptRatio is a header of an answer, hop by hop: the share of recent calls of the
	// request's criticality that the server has accepted, from 0 to 1. It is absent if that is
	// nearly 1, and at an edge.
	headerAcceptRatio = "X-Request-Accept-Ratio"

	// Headers of an answer of gRPC.
	headerGRPCStatus   = "Grpc-Status"
	headerGRPCMessage  = "Grpc-Message"
	headerGRPCPushback = "Grpc-Retry-Pushback-Ms"
)

// ownHeaders are the request headers that Spillway sets.
var ownHeaders = [...]string{headerCriticality, headerAttempt, headerDeadline, headerLevel, headerProgress}

// own has the values of these headers, in the order of ownHeaders; "" means that a header is
// absent.
type own [len(ownHeaders)]string

// These are the indexes of the headers in ownHeaders and own.
const (
	ownCriticality = iota
	ownAttempt
	ownDeadline
	ownLevel
	ownProgress
)

// ownOf returns the values that h has. It looks up each header by its constant name, because a loop
// over a table of names would cost more than the lookups.
func ownOf(h http.Header) own {
	return own{first(h, headerCriticality), first(h, headerAttempt), first(h, headerDeadline), first(h, headerLevel), first(h, headerProgress)}
}

// first returns the first value of a header. key is in canonical form.
func first(h http.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// has reports whether a header is present. key is in canonical form.
func has(h http.Header, key string) bool { return len(h[key]) > 0 }

// says reports whether one of the headers has that value, in upper or lower case.
func says(h http.Header, value string, keys ...string) bool {
	for _, key := range keys {
		if strings.EqualFold(strings.TrimSpace(first(h, key)), value) {
			return true
		}
	}
	return false
}

// The text entries has an entry for each number from 100 to 999, followed by zeros.
const (
	entryDigits = 3
	entryWidth  = 9
)

var entries = func() string {
	var b strings.Builder
	for n := 100; n < 1000; n++ {
		b.WriteString(strconv.Itoa(n) + "000000")
	}
	return b.String()
}()

// milliseconds returns d in whole milliseconds, from 1 to 999000000, rounded down to three digits.
// Each such number is a part of the constant text entries, so no request allocates its text. The
// receiver gets at most 1 % less time than there is.
func milliseconds(d time.Duration) string {
	n, width := max(d.Milliseconds(), 1), entryDigits
	for n >= 1000 && width < entryWidth {
		n, width = n/10, width+1
	}
	n = min(n, 999)
	for n < 100 {
		n, width = n*10, width-1
	}
	start := int(n-100) * entryWidth
	return entries[start : start+width]
}
