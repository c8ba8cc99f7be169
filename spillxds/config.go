package spillxds

import (
	"time"

	"google.golang.org/grpc"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/invalid"
)

// Config configures a [Client]. The zero Config is ready for use where gRPC's
// environment variables lead to a bootstrap.
type Config struct {
	// Bootstrap says where the control plane is. Nil means what
	// [BootstrapFromEnvironment] returns.
	Bootstrap *Bootstrap
	// Registry is where the limiters are. Have one in a process, so that all who
	// send to a cluster share its limit. Nil means a new one: [Client.Registry].
	Registry *inflight.Registry

	// Incremental chooses the incremental form of the protocol (delta). The
	// default is state of the world, which every control plane speaks; it sends
	// all clusters whenever one changes.
	Incremental bool
	// Wildcard asks for all clusters that the control plane has for this node, in
	// place of the clusters that [Client.Cluster] was called for. It is for control
	// planes that hold their answer back until everything they have was asked for.
	Wildcard bool
	// Deleted sets what happens to the limit of a cluster that the control plane
	// deletes. A bootstrap with the server feature ignore_resource_deletion makes it
	// KeepLimit.
	Deleted Deleted
	// DoesNotExist is how long to wait on a stream for a cluster before it counts
	// as one that does not exist. Zero means 15 s (gRFC A57), negative means for
	// ever; it must be at most an hour.
	DoesNotExist time.Duration
	// BackoffBase and BackoffMax are the first and the longest wait, but for
	// jitter, between streams that fail. A short one finds a control plane sooner
	// that comes back, and presses harder on one that struggles to. Zero means
	// 1 s and 120 s; both must be 1 ms to 1 h, and Max not below Base.
	BackoffBase, BackoffMax time.Duration

	// Reports says for which clusters loads are reported.
	Reports Reports
	// MinReportInterval is the shortest interval between load reports that the
	// control plane may ask for. Zero means 1 s; it must be 10 ms to 1 h.
	MinReportInterval time.Duration
	// FlushTimeout is how long Close waits for the server to take the last
	// report. Zero means 1 s; it must be 1 ms to 1 min.
	FlushTimeout time.Duration
	// Locality returns where an endpoint is, for load reports: the host and port
	// of an HTTP request, or the remote address of a call of gRPC. It must be quick
	// and safe for concurrent use. Nil means that it is not known.
	Locality func(endpoint string) Locality

	// MaxClusters is how many clusters are known at most; it bounds memory, a few
	// kilobytes each. Calls of Cluster beyond it fail; with a Wildcard, what the
	// control plane sends beyond it is ignored. Zero means 4096; it must be
	// positive.
	MaxClusters int
	// Observer, if not nil, receives each event, in order and one event at a time.
	// It must be quick, as the streams wait for it, and must not call the Client. If it panics, the Client goes on, and it receives a Panicked.
	Observer func(Event)
	// DialOptions are used for the connection, after the options of the bootstrap, and after
	// one by which a response may have 64 MiB.
	DialOptions []grpc.DialOption
}

// Deleted sets what happens to the limit of a deleted cluster.
type Deleted uint8

// The policies for deleted clusters.
const (
	// KeepLimit keeps the last one: what was deleted by mistake does no harm.
	KeepLimit Deleted = iota
	// DefaultLimit goes back to 1024 requests and no limit of retries.
	DefaultLimit
)

// Reports says for which clusters loads are reported.
type Reports uint8

// The policies for load reports.
const (
	// AsTold reports on clusters whose resource has lrs_server.self, as gRPC does.
	AsTold Reports = iota
	// Always reports on all clusters that the load reporting server asks for, as
	// Envoy does.
	Always
	// Never reports nothing.
	Never
)

// inRange is a field, its default, and what it may be.
type inRange struct {
	field        string
	value        *time.Duration
	preset       time.Duration
	least, great time.Duration
}

func (c Config) withDefaults() (Config, error) {
	for _, d := range []inRange{
		{"DoesNotExist", &c.DoesNotExist, 15 * time.Second, -1 << 63, time.Hour},
		{"BackoffBase", &c.BackoffBase, time.Second, time.Millisecond, time.Hour},
		{"BackoffMax", &c.BackoffMax, 120 * time.Second, time.Millisecond, time.Hour},
		{"MinReportInterval", &c.MinReportInterval, time.Second, 10 * time.Millisecond, maxReportInterval},
		{"FlushTimeout", &c.FlushTimeout, time.Second, time.Millisecond, time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.preset
		}
		if *d.value < d.least || *d.value > d.great {
			return c, invalid.Field("spillxds", d.field, *d.value, "%v to %v", max(d.least, 0), d.great)
		}
	}
	if c.MaxClusters == 0 {
		c.MaxClusters = 4096
	}
	switch {
	case c.BackoffMax < c.BackoffBase:
		return c, invalid.Field("spillxds", "BackoffMax", c.BackoffMax, "at least BackoffBase (%v)", c.BackoffBase)
	case c.MaxClusters < 0:
		return c, invalid.Field("spillxds", "MaxClusters", c.MaxClusters, "above 0")
	case c.Deleted > DefaultLimit:
		return c, invalid.Field("spillxds", "Deleted", c.Deleted, "KeepLimit or DefaultLimit")
	case c.Reports > Never:
		return c, invalid.Field("spillxds", "Reports", c.Reports, "AsTold, Always or Never")
	}
	if c.Registry == nil {
		c.Registry = new(inflight.Registry)
	}
	var err error
	if c.Bootstrap == nil {
		c.Bootstrap, err = BootstrapFromEnvironment()
	}
	if err == nil && c.Bootstrap.ignoreDeletion {
		c.Deleted = KeepLimit
	}
	return c, err
}

func (c *Config) backoff() backoff { return backoff{base: c.BackoffBase, most: c.BackoffMax} }
