package spillconnect

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/claims"
)

// The headers of a request.
const (
	headerCriticality = "X-Request-Criticality"
	headerLevel       = "X-Request-Level"    // 1 to 128, the same for all calls of a task
	headerProgress    = "X-Request-Progress" // calls of the task that were served; absent for 0
	headerBaggage     = "Baggage"
	headerTrace       = "Traceparent"                // where no level is known, the trace has one; only read
	headerAttempts    = "Grpc-Previous-Rpc-Attempts" // absent for the first attempt, 1 for the second
)

// The metadata of an error: headers with Connect, trailers with gRPC.
const (
	headerPushback    = "Grpc-Retry-Pushback-Ms"
	headerScope       = "X-Overload-Scope"
	headerReason      = "X-Overload-Reason"
	headerRetryAfter  = "Retry-After"
	headerShouldRetry = "X-Should-Retry"
)

// What an ErrorInfo says: the reason, and the scope in its metadata.
const (
	errorDomain     = "spillway"
	reasonTask      = "OVERLOADED"
	reasonDontRetry = "OVERLOADED_DONT_RETRY"
	reasonCustomer  = "OVER_QUOTA"
	metadataScope   = "x-overload-scope"
)

// label adds to the headers of an attempt how critical the call is, if ctx says that, the level and the progress of its task,
// and which attempt this is. External services get none of these headers.
func label(ctx context.Context, h http.Header, a *egress.Attempt, external bool) {
	h.Del(headerAttempts)
	if external {
		h.Del(headerCriticality)
		h.Del(headerLevel)
		h.Del(headerProgress)
		if values := h[headerBaggage]; claims.HasBaggage(values) {
			claims.Put(h, headerBaggage, claims.RemoveBaggage(values))
		}
		return
	}
	task := a.Task()
	if c, labelled := spillway.LookupCriticality(ctx); labelled && c.Valid() && h.Get(headerCriticality) == "" {
		h.Set(headerCriticality, c.String())
		baggage, _ := claims.ReplaceBaggage(h[headerBaggage], c, true, task.Level())
		claims.Put(h, headerBaggage, baggage)
	}
	if level := task.Level(); level > 0 {
		h[headerLevel] = claims.LevelValues[level]
		claims.Put(h, headerProgress, claims.ProgressValues[task.Progress()])
	}
	if a.Number > 0 {
		h.Set(headerAttempts, strconv.Itoa(a.Number))
	}
}

// fieldsOf returns the headers that say how much a call matters.
func fieldsOf(h http.Header) claims.Fields {
	return claims.Fields{Criticality: h[headerCriticality], Level: h[headerLevel], Progress: h[headerProgress], Baggage: h[headerBaggage]}
}

// restate has the headers of a call that is served say what was believed of its class and level. What was not believed must not be
// passed on to services that would believe it, by handlers that pass on the request or all baggage.
func restate(h http.Header, class spillway.Criticality, i *inheritance) {
	if f := fieldsOf(h); f.Restate(class, i.labelled, i.believed) {
		claims.Put(h, headerCriticality, f.Criticality)
		claims.Put(h, headerLevel, f.Level)
		claims.Put(h, headerProgress, f.Progress)
		claims.Put(h, headerBaggage, f.Baggage)
	}
}

// attemptOf returns which attempt the headers of a request name, from 0. The highest one
// counts.
func attemptOf(values []string) (n int) {
	for _, v := range values {
		if i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32); err == nil {
			n = max(n, int(i))
		}
	}
	return n
}
