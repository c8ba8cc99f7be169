package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

func TestTelemetry(t *testing.T) {
	reader, spans := metric.NewManualReader(), tracetest.NewInMemoryExporter()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	tracer := trace.NewTracerProvider(trace.WithSyncer(spans)).Tracer("test")
	h, err := newHandler(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		ctx, span := tracer.Start(context.Background(), "GET /carts/{id}")
		if code, body := get(t, h, httptest.NewRequestWithContext(ctx, http.MethodGet, "/carts/7", nil)); code != want {
			t.Errorf("%d %s, want %d", code, body, want)
		}
		span.End()
	}
	all := spans.GetSpans()
	if len(all) != 2 || len(all[0].Events) != 0 || len(all[1].Events) != 1 || all[1].Events[0].Name != "spillway.rejected" {
		t.Errorf("spans %+v", all)
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]int64)
	for _, m := range got.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, p := range sum.DataPoints {
				sums[m.Name+" "+m.Unit] += p.Value
			}
		}
	}
	if sums["spillway.decisions {decision}"] != 3 || sums["spillway.route_rejected {request}"] != 1 { // by ratelimit, shed; by ratelimit
		t.Errorf("got %v", sums)
	}
	carrier := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(spillway.WithCriticality(t.Context(), spillway.Sheddable), carrier)
	if carrier["baggage"] != "criticality=SHEDDABLE" {
		t.Errorf("baggage %v", carrier)
	}
}

// one admits one request, and the next after 100 s.
var one = ratelimit.Config{Rate: 0.01, BurstSeconds: 100}

// get returns the status and the answer.
func get(t *testing.T, h http.Handler, r *http.Request) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestLines(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\t// added\n")
	if len(parts) != 3 || strings.Count(parts[1], "\n") > 15 {
		t.Errorf("%d parts, want 15 added lines at most", len(parts))
	}
}
