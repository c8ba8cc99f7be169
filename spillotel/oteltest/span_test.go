package oteltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillotel"
)

// traced calls f with the context of a span, and returns what the span has then.
func traced(t *testing.T, f func(context.Context)) tracetest.SpanStub {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	ctx, span := provider.Tracer("test").Start(context.Background(), "request")
	f(ctx)
	span.End()
	all := exporter.GetSpans()
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	return all[0]
}

// texts returns the events of a span as texts, and its attributes.
func texts(s *tracetest.SpanStub) (events []string, attributes string) {
	list := func(all []attribute.KeyValue) string {
		var b strings.Builder
		for _, a := range all {
			b.WriteString(" " + string(a.Key) + "=" + a.Value.String())
		}
		return b.String()
	}
	for _, e := range s.Events {
		events = append(events, e.Name+list(e.Attributes))
	}
	return events, list(s.Attributes)
}

func TestRejectionOnSpan(t *testing.T) {
	o, _ := observer(t, spillotel.Config{})
	at := time.Unix(1000, 0)
	s := traced(t, func(ctx context.Context) {
		e := rejection(at)
		e.Context = ctx
		o.Observe(e)
		e.Mode, e.Policy, e.Limit = spillway.ModeObserve, "quota", 0
		o.Observe(e)
		e.Policy, e.Level, e.Limit, e.Unmeasured = "ratelimit", 0, 10, true
		o.Observe(e)
		o.Observe(spillway.Event{Time: at, Context: ctx, Policy: "shed", Outcome: spillway.OutcomeServed, Latency: 1}) // says nothing
	})
	events, attributes := texts(&s)
	want := []string{
		"spillway.rejected spillway.policy=shed spillway.reason=queue_full spillway.mode=enforce spillway.criticality=SHEDDABLE spillway.level=12 spillway.limit=10",
		"spillway.rejected spillway.policy=quota spillway.reason=queue_full spillway.mode=observe spillway.criticality=SHEDDABLE",
		"spillway.rejected spillway.policy=ratelimit spillway.reason=queue_full spillway.mode=observe spillway.criticality=SHEDDABLE spillway.limit=10",
	}
	if fmt.Sprint(events) != fmt.Sprint(want) || !s.Events[0].Time.Equal(at) {
		t.Errorf("got %q", events)
	}
	if attributes != " spillway.rejected.policy=shed spillway.rejected.reason=queue_full" {
		t.Errorf("got %q", attributes)
	}
	off, _ := observer(t, spillotel.Config{NoSpans: true})
	s = traced(t, func(ctx context.Context) {
		e := rejection(at)
		e.Context = ctx
		off.Observe(e)
	})
	if len(s.Events)+len(s.Attributes) > 0 {
		t.Errorf("NoSpans: %+v", s)
	}
}

// TestRetriesOnSpan makes calls with an egress.Client: the events come from the policies,
// with the context of the call.
func TestRetriesOnSpan(t *testing.T) {
	o, _ := observer(t, spillotel.Config{})
	strategy, err := retry.NewBudgeted(retry.BudgetedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	full, err := inflight.New(inflight.Config{MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	client, err := egress.New(egress.Config{Observer: o, Retry: strategy, InFlight: full})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 { // which pay for retries
		if err := client.Do(context.Background(), spillway.Call{Key: "db"}, func(context.Context, *egress.Attempt) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	secret := failure{errors.New("postgres://user:hunter2@db")}
	s := traced(t, func(ctx context.Context) {
		if err := client.Do(ctx, spillway.Call{Key: "db", Idempotent: true}, func(context.Context, *egress.Attempt) error { return secret }); err == nil {
			t.Error("no error")
		}
	})
	events, attributes := texts(&s)
	want := []string{
		"spillway.retry spillway.retry.attempt=1 spillway.outcome=failed",
		"spillway.retry spillway.retry.attempt=2 spillway.outcome=failed",
		"spillway.retry_stopped spillway.reason=attempts",
	}
	if fmt.Sprint(events) != fmt.Sprint(want) || attributes != " spillway.retry.count=2" {
		t.Errorf("got %q, %q", events, attributes)
	}
	s = traced(t, func(ctx context.Context) {
		_ = client.Do(ctx, spillway.Call{Key: "db"}, func(context.Context, *egress.Attempt) error {
			return client.Do(ctx, spillway.Call{Key: "db"}, nil) // the only place is taken
		})
	})
	if events, _ = texts(&s); len(events) != 1 || !strings.HasPrefix(events[0], "spillway.rejected spillway.policy=inflight spillway.reason=max_in_flight") {
		t.Errorf("got %q", events)
	}
}

// failure is one that may be retried.
type failure struct{ error }

func (failure) RetryInfo() fault.Failure { return fault.Failure{} }

// TestNoSpan: contexts without a span, with one that is not recorded, or none at all.
func TestNoSpan(t *testing.T) {
	o, _ := observer(t, spillotel.Config{})
	ctx, span := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())).Tracer("test").Start(context.Background(), "x")
	defer span.End()
	for _, ctx := range []context.Context{nil, context.Background(), ctx} {
		e := rejection(time.Now())
		e.Context = ctx
		o.Observe(e)
		c := call(time.Now())
		c.Context = ctx
		o.Observe(c)
	}
}

// A hedge is an event of the span, and no rejection.
func TestHedgeOnSpan(t *testing.T) {
	o, _ := observer(t, spillotel.Config{})
	for result, e := range map[string]spillway.Event{
		"won": {Outcome: spillway.OutcomeServed}, "lost": {Outcome: spillway.OutcomeAbandoned}, "rejected": {Rejected: true},
	} {
		e.Time, e.Policy, e.Call.Attempt = time.Now(), "hedge", 1
		s := traced(t, func(ctx context.Context) {
			hedge := e
			hedge.Context = ctx
			o.Observe(hedge)
		})
		if events, attributes := texts(&s); len(events) != 1 || events[0] != "spillway.hedge spillway.hedge.result="+result || attributes != "" {
			t.Errorf("%s: %q, %q", result, events, attributes)
		}
	}
}
