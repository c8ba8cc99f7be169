package spillotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// The keys of attributes of spans and their events. They have a prefix, and the
// attributes of metrics do not: all instrumentations share the attributes of a span.
const (
	keyPolicy      = attribute.Key("spillway.policy")
	keyReason      = attribute.Key("spillway.reason")
	keyMode        = attribute.Key("spillway.mode")
	keyCriticality = attribute.Key("spillway.criticality")
	keyLevel       = attribute.Key("spillway.level")
	keyLimit       = attribute.Key("spillway.limit")
	keyAttempt     = attribute.Key("spillway.retry.attempt")
	keyRetries     = attribute.Key("spillway.retry.count")
	keyOutcome     = attribute.Key("spillway.outcome")
	keyHedge       = attribute.Key("spillway.hedge.result")

	keyRejectedPolicy = attribute.Key("spillway.rejected.policy")
	keyRejectedReason = attribute.Key("spillway.rejected.reason")
)

// annotate writes what an event says to the active span, if there is something to write
// and the span is recorded.
func annotate(e *spillway.Event, k telemetry.Kind) {
	retry := e.Policy == "retry"
	if !e.Rejected && e.Call.Attempt == 0 && !(retry && k.Code() >= telemetry.Rejected) {
		return
	}
	span := trace.SpanFromContext(e.Context)
	if !span.IsRecording() {
		return
	}
	switch {
	case e.Policy == telemetry.PolicyHedge:
		span.AddEvent("spillway.hedge", trace.WithTimestamp(e.Time), trace.WithAttributes(keyHedge.String(telemetry.HedgeResult(e))))
	case e.Rejected:
		rejected(span, e, k)
	case retry:
		ended(span, e, k)
	case e.Policy == "inflight": // the last gate of an attempt
		span.AddEvent("spillway.retry", trace.WithTimestamp(e.Time),
			trace.WithAttributes(keyAttempt.Int(int(e.Call.Attempt)), keyOutcome.String(k.Outcome())))
	}
}

// rejected writes a rejection. One by a gate that observes is no attribute of the span.
func rejected(span trace.Span, e *spillway.Event, k telemetry.Kind) {
	all := []attribute.KeyValue{
		keyPolicy.String(k.Policy()), keyReason.String(k.Reason()), keyMode.String(e.Mode.String()),
		keyCriticality.String(e.Call.Criticality.String()),
	}
	if e.Limit != 0 && !e.Unmeasured {
		all = append(all, keyLevel.Float64(e.Level))
	}
	if e.Limit != 0 {
		all = append(all, keyLimit.Float64(e.Limit))
	}
	span.AddEvent("spillway.rejected", trace.WithTimestamp(e.Time), trace.WithAttributes(all...))
	if e.Mode == spillway.ModeEnforce {
		span.SetAttributes(keyRejectedPolicy.String(k.Policy()), keyRejectedReason.String(k.Reason()))
	}
}

// ended writes how a call ended that was retried, or was not retried any more.
func ended(span trace.Span, e *spillway.Event, k telemetry.Kind) {
	if e.Call.Attempt > 0 {
		span.SetAttributes(keyRetries.Int(int(e.Call.Attempt)))
	}
	if k.Code() >= telemetry.Rejected {
		span.AddEvent("spillway.retry_stopped", trace.WithTimestamp(e.Time.Add(e.Latency)), trace.WithAttributes(keyReason.String(k.Reason())))
	}
}
