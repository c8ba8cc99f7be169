// Package spillotel reports the decisions and levels of Spillway to OpenTelemetry: metrics,
// events on the active span, and criticality in W3C Baggage.
//
//	observer, err := spillotel.New(spillotel.Config{})
//	server, err := ingress.New(ingress.Config{Observer: observer})
//	observer.AddServer("main", server)
//	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, spillotel.Propagator{}))
//
// # Metrics
//
// Names, units and attributes are in docs/metrics.md. They match those of package
// spillprom: spillway.decisions becomes spillway_decisions_total in
// Prometheus. Counters are read when metrics are exported, so that counting a decision does
// not need the SDK. Latencies are recorded by the SDK, with its exemplars.
//
// # Spans
//
// The span of the context of the call gets an event for each rejection (spillway.rejected),
// for each attempt after the first (spillway.retry), and for a call that is not retried any
// more (spillway.retry_stopped). It also gets these attributes:
//
//	spillway.rejected.policy, spillway.rejected.reason  of the rejection
//	spillway.retry.count                                attempts after the first
//
// Only a span that is being recorded costs anything. The status of the span is left to the
// instrumentation of the transport. Keys of backends, customers and errors are not written.
//
// # Baggage
//
// A [Propagator] takes the place of propagation.Baggage. It writes the criticality of the
// context as the member "criticality" and leaves all other members as they are.
package spillotel
