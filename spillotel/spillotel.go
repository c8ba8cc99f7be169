package spillotel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/quota/fleet"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/seed90641741/spillway/spillotel"

// Config configures an [Observer]. The zero Config is ready for use.
type Config struct {
	// Meter makes the instruments. Nil means one of the global MeterProvider.
	Meter metric.Meter
	// MaxRoutes is how many pairs of a route and a reason have a metric of their own: those with
	// most rejections. Zero means 20, negative means none; it must be at most 64.
	MaxRoutes int
	// MaxCustomers is the same for customers. Choose a negative number where their names are
	// secrets, such as API keys. Zero means 10, negative means none; it must be at most 64.
	MaxCustomers int
	// MaxBackends is how many backends of clients have levels of their own: the most throttled
	// ones first, then those with most calls in flight. Zero means 10, negative means none.
	MaxBackends int
	// NoSpans turns off events and attributes on the active span.
	NoSpans bool
}

// An Observer reports to OpenTelemetry. It is safe for concurrent use; make one with [New].
type Observer struct {
	config   Config
	recorder *telemetry.Recorder
	latency  metric.Float64Histogram
	roles    [len(telemetry.Roles)][]metric.RecordOption
	counters map[*telemetry.Metric]metric.Int64ObservableCounter
	gauges   map[*telemetry.Metric]metric.Float64ObservableGauge
	callback metric.Registration
	sources  telemetry.Sources
}

var _ spillway.Observer = (*Observer)(nil)

// New returns an Observer, or an error that names the field of c that is wrong, or that of
// the Meter. Close it when it is not used any more.
func New(c Config) (*Observer, error) {
	r, err := telemetry.NewRecorder(c.MaxRoutes, c.MaxCustomers)
	if err != nil {
		return nil, fmt.Errorf("spillotel: %w", err)
	}
	o := &Observer{config: c, recorder: r}
	if o.config.Meter == nil {
		o.config.Meter = otel.Meter(scope)
	}
	if err := o.instruments(); err != nil {
		return nil, fmt.Errorf("spillotel: %w", err)
	}
	return o, nil
}

// Close stops reporting counters and levels.
func (o *Observer) Close() error {
	if err := o.callback.Unregister(); err != nil {
		return fmt.Errorf("spillotel: %w", err)
	}
	return nil
}

// instruments makes one instrument for each row of the table, and registers what reads them.
func (o *Observer) instruments() error {
	o.counters = make(map[*telemetry.Metric]metric.Int64ObservableCounter)
	o.gauges = make(map[*telemetry.Metric]metric.Float64ObservableGauge)
	var all []metric.Observable
	var errs []error
	m := o.config.Meter
	for _, x := range telemetry.Metrics {
		if !x.OfLibrary() {
			continue
		}
		var err error
		switch x.Type {
		case telemetry.Counter:
			o.counters[x], err = m.Int64ObservableCounter(x.OTel(), metric.WithUnit(x.Unit), metric.WithDescription(x.Help))
			all = append(all, o.counters[x])
		case telemetry.Gauge:
			o.gauges[x], err = m.Float64ObservableGauge(x.OTel(), metric.WithUnit(x.Unit), metric.WithDescription(x.Help))
			all = append(all, o.gauges[x])
		default:
			o.latency, err = m.Float64Histogram(x.OTel(), metric.WithUnit(x.Unit), metric.WithDescription(x.Help),
				metric.WithExplicitBucketBoundaries(telemetry.Bounds[:]...))
		}
		errs = append(errs, err)
	}
	for i, role := range telemetry.Roles {
		o.roles[i] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("role", role)))}
	}
	var err error
	o.callback, err = m.RegisterCallback(o.collect, all...)
	return errors.Join(append(errs, err)...)
}

// A Server has the levels of the server side. [ingress.Server] is one.
type Server interface {
	Stats(now time.Time) ingress.Stats
}

// A Client has the levels of the client side, by backend. The Transport of package
// spillhttp and the Client of package spillgrpc are Clients.
type Client interface {
	Stats(now time.Time) map[string]egress.Stats
}

// A Budget has the level of a retry budget. [budget.Bucket] is one.
type Budget interface {
	Stats(now time.Time) budget.Stats
}

// A Quota has the state of a quota that many tasks share. [fleet.Fleet] is one.
type Quota interface {
	Stats(now time.Time) fleet.Stats
}

// AddServer reports the levels of s from now on, with the attribute listener. It replaces
// a server with the same name.
func (o *Observer) AddServer(listener string, s Server) {
	o.sources.AddServer(listener, s)
}

// AddClient reports the levels of c from now on, with the key of each backend as the
// attribute cluster. Backends with the same key in several clients are added up.
func (o *Observer) AddClient(c Client) {
	o.sources.AddClient(c)
}

// AddBudget reports the level of b from now on, with the attribute cluster. It replaces a
// budget with the same name.
func (o *Observer) AddBudget(cluster string, b Budget) {
	o.sources.AddBudget(cluster, b)
}

// AddQuota reports from now on whether the tasks of q exchange reports, with the attribute quota. It
// replaces a quota with the same name.
func (o *Observer) AddQuota(name string, q Quota) {
	o.sources.AddQuota(name, q)
}

// Observe implements [spillway.Observer].
func (o *Observer) Observe(e spillway.Event) {
	k := o.recorder.Record(&e)
	ctx := e.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if role := k.Role(); role >= 0 && e.Latency > 0 && !e.Rejected {
		o.latency.Record(ctx, e.Latency.Seconds(), o.roles[role]...)
	}
	if !o.config.NoSpans && e.Context != nil {
		annotate(&e, k)
	}
}
