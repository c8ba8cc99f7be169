package spillhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of both directions, in canonical form. Where a convention
// exists it is used: the names come from Envoy, Finagle, Stripe and the SDKs
// that Stainless generates.
const (
	// of a request
	headerCriticality = "X-Request-Criticality"
	headerLevel       = "X-Request-Level"                // 1 to 128, the same for all calls of a task: our own
	headerProgress    = "X-Request-Progress"             // calls of the task that were served; absent for 0: our own
	headerAttempt     = "X-Envoy-Attempt-Count"          // 1 for the first attempt; hop by hop
	headerDeadline    = "X-Envoy-Expected-Rq-Timeout-Ms" // what is left of the deadline; hop by hop

	// read only, from others than a Transport
	headerBaggage      = "Baggage"                    // W3C; may have members criticality, level and progress
	headerTrace        = "Traceparent"                // W3C; where no level is known, the trace has one
	headerSDKRequest   = "Amz-Sdk-Request"            // attempt=1 for the first attempt
	headerGRPCAttempts = "Grpc-Previous-Rpc-Attempts" // absent for the first attempt, 1 for the second
	headerGRPCTimeout  = "Grpc-Timeout"

	// of an answer
	headerRetryAfter   = "Retry-After"
	headerRetryAfterMs = "Retry-After-Ms"
	headerOverloaded   = "X-Envoy-Overloaded"
	headerScope        = "X-Overload-Scope"  // task, service or customer: our own
	headerReason       = "X-Overload-Reason" // overload, quota, or the Reason: our own
	headerRateLimited  = "X-Envoy-Ratelimited"
	headerShouldRetry  = "X-Should-Retry"
	headerStripe       = "Stripe-Should-Retry"
	headerNack         = "Finagle-Http-Nack"
	headerFinalNack    = "Finagle-Http-Nonretryable-Nack"
	headerRateLimit    = "Ratelimit" // draft-ietf-httpapi-ratelimit-headers
	headerRequestID    = "X-Request-Id"

	// headerAcceptRatio is of an answer, hop by hop: the share of the calls of the
	// request's criticality that the server has accepted recently, from 0 to 1. It is
	// absent where that is nearly 1, and at an edge.
	headerAcceptRatio = "X-Request-Accept-Ratio"

	// of an answer of gRPC
	headerGRPCStatus   = "Grpc-Status"
	headerGRPCMessage  = "Grpc-Message"
	headerGRPCPushback = "Grpc-Retry-Pushback-Ms"
)

// ownHeaders are the request headers that Spillway sets.
var ownHeaders = [...]string{headerCriticality, headerAttempt, headerDeadline, headerLevel, headerProgress}

// own are the values of the own headers, in the order of ownHeaders; an empty
// text means none.
type own [len(ownHeaders)]string

// The places of the own headers.
const (
	ownCriticality = iota
	ownAttempt
	ownDeadline
	ownLevel
	ownProgress
)

// ownOf returns what h says by itself. It looks up each key by its name: a table of them costs more
// than the lookups.
func ownOf(h http.Header) own {
	return own{first(h, headerCriticality), first(h, headerAttempt), first(h, headerDeadline), first(h, headerLevel), first(h, headerProgress)}
}

// first returns the first value of a header whose key is in canonical form.
func first(h http.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// has reports whether there is a header whose key is in canonical form.
func has(h http.Header, key string) bool { return len(h[key]) > 0 }

// says reports whether one of the headers has that value, whatever its case.
func says(h http.Header, value string, keys ...string) bool {
	for _, key := range keys {
		if strings.EqualFold(strings.TrimSpace(first(h, key)), value) {
			return true
		}
	}
	return false
}

// Each entry of milliseconds is one of the numbers 100 to 999, followed by zeros.
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

// milliseconds returns d in whole milliseconds, at least 1 and at most
// 999000000, rounded down to three digits: the text of any such number is a
// piece of one constant, and none has to be made for each request. The receiver
// gets at most 1 % less time than there is.
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
