package spillprom

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/quota/fleet"
)

// A Collector counts decisions and reports them to Prometheus. It is safe for concurrent
// use; make one with [New].
type Collector struct {
	config    Config
	recorder  *telemetry.Recorder
	latency   [len(telemetry.Roles)]telemetry.LatencyHistogram
	exemplars [len(telemetry.Roles)][telemetry.Buckets + 1]exemplar
	sources   telemetry.Sources
}

var (
	_ spillway.Observer    = (*Collector)(nil)
	_ prometheus.Collector = (*Collector)(nil)
)

// New returns a Collector, or an error that names the field of c that is wrong.
func New(c Config) (*Collector, error) {
	r, err := telemetry.NewRecorder(c.MaxRoutes, c.MaxCustomers)
	if err != nil {
		return nil, fmt.Errorf("spillprom: %w", err)
	}
	return &Collector{config: c, recorder: r}, nil
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

// AddServer reports the levels of s from now on, with the label listener. It replaces a
// server with the same name.
func (x *Collector) AddServer(listener string, s Server) {
	x.sources.AddServer(listener, s)
}

// AddClient reports the levels of c from now on, with the key of each backend as the label
// cluster. Backends with the same key in several clients are added up.
func (x *Collector) AddClient(c Client) {
	x.sources.AddClient(c)
}

// AddBudget reports the level of b from now on, with the label cluster. It replaces a
// budget with the same name.
func (x *Collector) AddBudget(cluster string, b Budget) {
	x.sources.AddBudget(cluster, b)
}

// AddQuota reports from now on whether the tasks of q exchange reports, with the label quota. It
// replaces a quota with the same name.
func (x *Collector) AddQuota(name string, q Quota) {
	x.sources.AddQuota(name, q)
}

// Observe implements [spillway.Observer].
func (x *Collector) Observe(e spillway.Event) {
	role := x.recorder.Record(&e).Role()
	if role < 0 || e.Latency <= 0 {
		return
	}
	bucket := x.latency[role].Add(e.Latency)
	if x.config.Exemplar != nil && e.Context != nil {
		x.exemplars[role][bucket].offer(&e, x.config.Exemplar)
	}
}
