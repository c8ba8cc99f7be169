package spillxds

import (
	"encoding/base64"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/elapsed"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/load"
)

// The trailer of gRPC, and the header of HTTP, that carries a report.
const (
	orcaTrailer = "endpoint-load-metrics-bin"
	orcaHeader  = "Endpoint-Load-Metrics-Bin"
)

// busyShare is the share of rejections from which a server is reported as fully utilized,
// whatever its measurements are.
const busyShare = 0.01

// OrcaConfig configures an [Orca].
type OrcaConfig struct {
	// Server is what is reported on. It must not be nil.
	Server *ingress.Server
	// Utilization returns the utilization of the server, 1 at its target, before rejections
	// are taken into account. It must be quick and is never called concurrently. Negative
	// values and NaN count as 0, which clients treat as unknown. Nil means the greater of the
	// utilization and the executor load average.
	Utilization func(load.Stats) float64
	// Interval is how long a report is used again before another is made. Zero
	// means 100 ms; it must be 10 ms to 10 s.
	Interval time.Duration
	// Smoothing is the time constant over which rates are averaged. A long one
	// keeps weights steady, a short one moves load away sooner. Zero means 1 s; it
	// must be 10 ms to 1 min.
	Smoothing time.Duration
	// MinOutOfBand is the shortest interval that a client can ask for out of band;
	// shorter ones are brought up to it. Zero means 1 s; it must be 10 ms to 1 h.
	MinOutOfBand time.Duration
}

func (c OrcaConfig) withDefaults() (OrcaConfig, error) {
	for _, d := range []inRange{
		{"Interval", &c.Interval, 100 * time.Millisecond, 10 * time.Millisecond, 10 * time.Second},
		{"Smoothing", &c.Smoothing, time.Second, 10 * time.Millisecond, time.Minute},
		{"MinOutOfBand", &c.MinOutOfBand, time.Second, 10 * time.Millisecond, time.Hour},
	} {
		if *d.value == 0 {
			*d.value = d.preset
		}
		if *d.value < d.least || *d.value > d.great {
			return c, invalid.Field("spillxds", d.field, *d.value, "%v to %v", d.least, d.great)
		}
	}
	if c.Utilization == nil {
		c.Utilization = busiest
	}
	if c.Server == nil {
		return c, invalid.Field("spillxds", "Server", nil, "an ingress.Server")
	}
	return c, nil
}

// An Orca makes reports of how busy a server is (ORCA), for clients that balance
// by them. It is safe for concurrent use; make one with [NewOrca].
type Orca struct {
	config OrcaConfig
	stop   chan struct{}
	closed func()

	calls  atomic.Uint64 // seen by the interceptors and the Handler
	report atomic.Pointer[orcaReport]
	making sync.Mutex
	rates  rates
}

// orcaReport is one report, in the forms in which it is sent.
type orcaReport struct {
	at      time.Time
	message *orcapb.OrcaLoadReport
	trailer metadata.MD
	header  string
}

// NewOrca returns an Orca, or an error that names the field of c that is wrong.
func NewOrca(c OrcaConfig) (*Orca, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	o := &Orca{config: c, stop: make(chan struct{})}
	o.closed = sync.OnceFunc(func() { close(o.stop) })
	o.rates.tau = c.Smoothing
	o.rates.next(now, o.totals(c.Server.Stats(now)))
	return o, nil
}

// Close ends all streams out of band, for which a graceful stop of the gRPC server
// would wait. Any further Close does nothing.
func (o *Orca) Close() { o.closed() }

// Report returns how busy the server is at the time now. It must not be changed.
func (o *Orca) Report(now time.Time) *orcapb.OrcaLoadReport { return o.at(now).message }

// Handler returns next with the report in a header of each answer,
// endpoint-load-metrics-bin, as Envoy reads it.
func (o *Orca) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.calls.Add(1)
		w.Header()[orcaHeader] = []string{o.at(time.Now()).header}
		next.ServeHTTP(w, r)
	})
}

// at returns a report that is not older than the interval, unless another
// goroutine is just making one.
func (o *Orca) at(now time.Time) *orcaReport {
	last := o.report.Load()
	if last != nil && now.Sub(last.at) < o.config.Interval {
		return last
	}
	if last == nil {
		o.making.Lock()
	} else if !o.making.TryLock() {
		return last
	}
	defer o.making.Unlock()
	if newer := o.report.Load(); newer != last {
		return newer
	}
	made := o.make(now)
	o.report.Store(made)
	return made
}

func (o *Orca) make(now time.Time) *orcaReport {
	stats := o.config.Server.Stats(now)
	all, rejected := o.rates.next(now, o.totals(stats))
	m := &orcapb.OrcaLoadReport{
		ApplicationUtilization: shedding(o.config.Utilization(stats.Load), all, rejected),
		RpsFractional:          all, Eps: rejected,
	}
	m.CpuUtilization = valueOf(stats.Load, load.CPU)
	m.MemUtilization = min(valueOf(stats.Load, load.Memory), 1)
	r := &orcaReport{at: now, message: m}
	if text, err := proto.Marshal(m); err == nil { // which does not fail for such a message
		r.trailer = metadata.Pairs(orcaTrailer, string(text))
		r.header = base64.StdEncoding.EncodeToString(text)
	}
	return r
}

// totals returns the number of requests, and the number that was rejected because the server
// was too busy, without the rejections of gates in observe mode. The gates may not see all
// requests, nor may the interceptors.
func (o *Orca) totals(s ingress.Stats) [2]uint64 {
	var all, shed uint64
	for _, n := range s.RejectedTotal {
		all += n
	}
	for _, c := range s.Shed.Classes {
		all += c.AdmittedTotal
		shed += c.AdmittedTotal + c.RejectedTotal
	}
	return [2]uint64{max(all, shed, o.calls.Load()), s.RejectedTotal[spillway.OutcomeOverloaded]}
}

func busiest(s load.Stats) float64 { return max(s.Utilization, valueOf(s, load.Average)) }

// shedding returns u or, while requests are rejected, 1 plus their share, if that is more.
func shedding(u, all, rejected float64) float64 {
	if !(u >= 0) { // also if it is no number, which would go around through all weights
		u = 0
	}
	if share := rejected / all; share >= busyShare { // false if there are no requests
		u = max(u, 1+share)
	}
	return u
}

// valueOf returns a measure, 0 if it is not known.
func valueOf(s load.Stats, m load.Measure) float64 {
	for _, r := range s.Readings {
		if r.Name == m.String() {
			return max(r.Value, 0)
		}
	}
	return 0
}

// rates averages how fast totals grow, exponentially over tau.
type rates struct {
	tau     time.Duration
	at      time.Time
	totals  [2]uint64
	average [2]float64
	seen    float64 // weight of what was averaged so far, 1 after a long time
}

// next takes in totals at the time now, and returns how fast they grow per second.
func (r *rates) next(now time.Time, totals [2]uint64) (all, rejected float64) {
	if d := now.Sub(r.at); !r.at.IsZero() && d > 0 {
		k := elapsed.Weight(d, r.tau)
		r.seen += (1 - r.seen) * k
		for i, n := range totals {
			r.average[i] += (float64(n-r.totals[i])/d.Seconds() - r.average[i]) * k
		}
	} else if !r.at.IsZero() {
		return r.now()
	}
	r.at, r.totals = now, totals
	return r.now()
}

// now corrects for the zeroes that the averages began with.
func (r *rates) now() (all, rejected float64) {
	if r.seen == 0 {
		return 0, 0
	}
	return r.average[0] / r.seen, r.average[1] / r.seen
}
