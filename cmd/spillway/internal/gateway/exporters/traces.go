package exporters

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
)

// Spans wait for their export in a queue of this length, 2 or 3 kB each. When it is full,
// because the receiver is slow or unreachable, spans are dropped; no request waits.
const spanQueue = 2048

// A Tracer makes spans of requests and sends them. It is safe for concurrent use.
type Tracer struct {
	ratio  float64
	spans  *loglimit.Rate
	tracer trace.Tracer
	*Exporter
}

// StartTraces exports spans to the endpoint of c. Without traces in c it returns nil. The
// other arguments are as for [Start]. The Tracer must be closed.
func StartTraces(c *config.Otel, version string, logger *slog.Logger) (*Tracer, error) {
	if err := Check(c); c == nil || c.Traces == nil || err != nil {
		return nil, err
	}
	e, err := newExporter(c, logger)
	if err != nil {
		return nil, err
	}
	t := &Tracer{ratio: c.Traces.Ratio, Exporter: e}
	if t.spans, err = loglimit.NewRate(c.Traces.Rate); err != nil {
		return nil, fmt.Errorf("otel.traces: %w", err)
	}
	exporter, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(strings.TrimSuffix(c.Endpoint, "/")+"/v1/traces"),
		otlptracehttp.WithHeaders(nil),
		otlptracehttp.WithTLSClientConfig(nil),
		otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
		otlptracehttp.WithMaxResponseSize(maxResponse),
		otlptracehttp.WithTimeout(patience),
		otlptracehttp.WithHTTPClient(e.client))
	if err != nil {
		return nil, err
	}
	provider := sdk.NewTracerProvider(
		sdk.WithResource(resourceOf(c, version, t.failures)),
		sdk.WithSampler(sdk.AlwaysSample()), // what is not sampled never comes here
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(spanQueue), sdk.WithExportTimeout(patience)))
	t.provider, t.tracer = provider, provider.Tracer("github.com/seed90641741/spillway/cmd/spillway", trace.WithInstrumentationVersion(version))
	return t, nil
}

// A Span is the span of one request.
type Span struct {
	span   trace.Span
	parent http.Header
}

// Start begins the span of a request with a header, or returns nil if the request is not
// sampled. The sampled flag of a trusted traceparent decides, within the rate. On a nil Tracer
// it returns nil.
func (t *Tracer) Start(now time.Time, h http.Header, believed bool) *Span {
	if t == nil {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	parent := trace.SpanContextFromContext(ctx)
	sampled := rand.Float64() < t.ratio
	if believed && parent.IsValid() {
		sampled = parent.IsSampled()
	}
	if !sampled || !t.spans.Admit(now) {
		return nil
	}
	ctx, span := t.tracer.Start(ctx, "proxy", trace.WithTimestamp(now), trace.WithSpanKind(trace.SpanKindServer)) //nolint:spancheck // Span.End ends it
	s := &Span{span: span, parent: make(http.Header)}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(s.parent))
	return s //nolint:spancheck // Span.End ends it
}

// Inject sets the span as the parent in the outgoing headers h. On nil it does nothing.
func (s *Span) Inject(h http.Header) {
	if s != nil {
		h["Traceparent"] = s.parent["Traceparent"]
	}
}

// End ends the span, with a name and attributes. Failed says that it is an error. On nil it does
// nothing.
func (s *Span) End(now time.Time, name string, failed bool, all ...attribute.KeyValue) {
	if s == nil {
		return
	}
	s.span.SetName(name)
	s.span.SetAttributes(all...)
	if failed {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End(trace.WithTimestamp(now))
}

// Close sends the queued spans and stops. It takes a few seconds at most, and must be called
// once; on nil it does nothing.
func (t *Tracer) Close() {
	if t != nil {
		t.Exporter.Close()
	}
}
