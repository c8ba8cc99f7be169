package spillotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

const (
	header = "baggage"     // of W3C Baggage
	member = "criticality" // of a baggage
)

// A Propagator carries W3C Baggage with the criticality in it: use it in place of
// [propagation.Baggage], for transports that Spillway has no adapter for, such as
// queues. The zero Propagator trusts no sender.
type Propagator struct {
	// Internal says that all senders are trusted: the criticality that comes in is that of
	// the context. Otherwise it is dropped, so that no client can choose its own. Handlers of
	// packages spillhttp and spillgrpc decide by their own boundary, whatever is set here.
	Internal bool
}

var _ propagation.TextMapPropagator = Propagator{}

// Inject writes the baggage of ctx to the carrier, with the criticality of ctx if it has
// one. Where that would break a limit of W3C Baggage (64 members, 8,192 bytes), the
// criticality is left out.
func (p Propagator) Inject(ctx context.Context, to propagation.TextMapCarrier) {
	propagation.Baggage{}.Inject(ctx, to)
	class, ok := spillway.LookupCriticality(ctx)
	if !ok {
		return
	}
	if values := claims.SetBaggage([]string{to.Get(header)}, class); len(values) > 0 && values[0] != "" {
		to.Set(header, strings.Join(values, ","))
	}
}

// Extract returns ctx with the baggage of the carrier, and with its criticality if the
// sender is trusted.
func (p Propagator) Extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	ctx = propagation.Baggage{}.Extract(ctx, from)
	b := baggage.FromContext(ctx)
	m := b.Member(member)
	if m.Key() == "" {
		return ctx
	}
	ctx = baggage.ContextWithBaggage(ctx, b.DeleteMember(member)) // Inject writes that of the context
	if class, ok := claims.Criticality(nil, []string{from.Get(header)}); ok && p.Internal {
		ctx = spillway.WithCriticality(ctx, class)
	}
	return ctx
}

// Fields implements [propagation.TextMapPropagator].
func (p Propagator) Fields() []string { return propagation.Baggage{}.Fields() }
