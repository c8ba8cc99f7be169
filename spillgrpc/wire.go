package spillgrpc

import (
	"context"
	"strconv"

	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// The metadata of both directions.
const (
	// of a request
	keyCriticality = "x-request-criticality"
	keyAttempts    = "grpc-previous-rpc-attempts" // absent for the first attempt, 1 for the second; hop by hop
	keyBaggage     = "baggage"                    // W3C; has a member criticality, too

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
	metadataGate    = "gate" // which policy has refused the call; to internal callers only
)

// labels are the metadata of an attempt that has a label and nothing else, by
// criticality. They are shared: grpc reads what it sends, and a caller that asks for the
// metadata of a context gets a copy.
var labels = func() (all [spillway.Criticalities]metadata.MD) {
	for i := range all {
		c := spillway.Criticality(i) + spillway.Sheddable
		all[i] = metadata.MD{keyCriticality: {c.String()}, keyBaggage: claims.SetBaggage(nil, c)}
	}
	return all
}()

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

// dress returns the context for an attempt, with metadata for the criticality, if ctx or the
// caller sets one, also as baggage, and for the attempt number. External services get none of
// these. An attempt number that the caller has set is removed.
func dress(ctx context.Context, number int, external bool) context.Context {
	c, labelled := spillway.LookupCriticality(ctx)
	hasLabel := len(metadata.ValueFromOutgoingContext(ctx, keyCriticality)) > 0
	hasNumber := len(metadata.ValueFromOutgoingContext(ctx, keyAttempts)) > 0
	add := labelled && c.Valid() && !hasLabel && !external
	baggage, newBaggage := outgoingBaggage(ctx, c, labelled, external)
	if !add && !newBaggage && !(hasLabel && external) && !hasNumber && (number == 0 || external) {
		return ctx
	}
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok && number == 0 {
		return metadata.NewOutgoingContext(ctx, labels[c.Index()])
	}
	if !ok {
		md = make(metadata.MD, 2)
	}
	delete(md, keyAttempts)
	if newBaggage {
		claims.Put(md, keyBaggage, baggage)
	}
	switch {
	case external:
		delete(md, keyCriticality)
	case add:
		md[keyCriticality] = labels[c.Index()][keyCriticality]
	}
	if number > 0 && !external {
		md[keyAttempts] = []string{strconv.Itoa(number)}
	}
	return metadata.NewOutgoingContext(ctx, md)
}
