package spillconnect

import (
	"context"
	"net/http"
	"strconv"

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

// importance are the headers that say how much a call matters.
var importance = claims.Names{Criticality: headerCriticality, Level: headerLevel, Progress: headerProgress, Baggage: headerBaggage}
