package spillgrpc

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// The metadata of both directions.
const (
	// of a request
	keyCriticality = "x-request-criticality"
	keyLevel       = "x-request-level"            // 1 to 128, the same for all calls of a task: our own
	keyProgress    = "x-request-progress"         // calls of the task that were served; absent for 0: our own
	keyAttempts    = "grpc-previous-rpc-attempts" // absent for the first attempt, 1 for the second; hop by hop
	keyBaggage     = "baggage"                    // W3C; has members criticality and level, too
	keyTrace       = "traceparent"                // W3C; where no level is known, the trace has one; only read

	// of an answer, in its trailer
	keyPushback = "grpc-retry-pushback-ms"
	keyScope    = "x-overload-scope"  // task, service or customer: our own
	keyReason   = "x-overload-reason" // the Reason, to internal callers only: our own
)

// What an ErrorInfo of ours says: the reason, and in its metadata the scope under keyScope and the
// Reason under keyReason, for answers that have no trailer.
const (
	errorDomain     = "spillway"
	reasonTask      = "OVERLOADED"
	reasonDontRetry = "OVERLOADED_DONT_RETRY"
	reasonCustomer  = "OVER_QUOTA"
	metadataGate    = "gate" // which policy has rejected the call; to internal callers only
)

// importanceKeys are the metadata that say how much a call matters.
var importanceKeys = claims.Names{Criticality: keyCriticality, Level: keyLevel, Progress: keyProgress, Baggage: keyBaggage}

// adopt returns ctx with the criticality that the metadata of the caller names,
// if they do.
func adopt(ctx context.Context) context.Context {
	for _, text := range metadata.ValueFromOutgoingContext(ctx, keyCriticality) {
		if c, err := spillway.ParseCriticality(text); err == nil {
			return spillway.WithCriticality(ctx, c)
		}
	}
	return ctx
}
