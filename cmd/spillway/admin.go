package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/collector"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/httpproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/lines"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/otel"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/tune"
)

// defaultAdmin is the default address for operators.
const defaultAdmin = "127.0.0.1:8001"

// operators gives operators a view of a proxy and applies their changes. It implements
// [admin.Proxy].
type operators struct {
	logger   *slog.Logger
	proxy    *gateway.Proxy
	follower *follower
	server   *admin.Server // nil: no page and no metrics
	address  string        // of it, as it was asked for
	exporter *otel.Exporter

	collector *collector.Collector

	asks     chan func()   // that the follower is to do
	draining chan struct{} // closed when the follower does nothing any more
	config   atomic.Pointer[config.Config]
	override atomic.Pointer[admin.Override]
	events   events
	tls      atomic.Pointer[tls.Config] // nil: in the clear
}

// operate opens the address for operators, from the flag or the configuration. If the
// default address is not available, the proxy runs without it.
func operate(flag string, f *follower, collector *collector.Collector, decided *decisions.Log) (*operators, error) {
	o := &operators{
		logger: f.logger, proxy: f.proxy, follower: f, collector: collector,
		asks: make(chan func()), draining: make(chan struct{}),
	}
	o.events.use(f.now)
	o.use(f.now)
	socket, err := o.listen(flag)
	if err != nil || socket == nil && f.now.Otel == nil {
		return o, err
	}
	o.server = admin.New(admin.Config{Collector: collector, Decisions: decided, Proxy: o, Access: o.access(), Version: version(), Logger: f.logger, Wall: f.wall})
	if socket != nil {
		o.serve(socket)
	}
	if o.exporter, err = otel.Start(f.now.Otel, version(), o.server.Metrics(), f.logger); err != nil {
		o.close()
	}
	return o, err
}

// listen opens the address from the flag or the configuration. It returns nil if the
// address is off, or if the default address is not available.
func (o *operators) listen(flag string) (socket net.Listener, err error) {
	address := cmp.Or(flag, o.follower.now.Admin.Address)
	if address == "off" {
		return socket, nil
	}
	o.address = cmp.Or(address, defaultAdmin)
	if err := o.secure(o.follower.now); err != nil {
		return nil, fmt.Errorf("the address for operators: %w", err)
	}
	socket, err = o.open()
	switch {
	case err != nil && address != "":
		return nil, fmt.Errorf("the address for operators: %w", err)
	case err != nil:
		o.logger.Warn("there is no page for operators; --admin says where one can be", "error", err)
	}
	return socket, nil
}

// open opens the address: TCP, or a Unix socket that the same group can access.
func (o *operators) open() (net.Listener, error) {
	path, unix := strings.CutPrefix(o.address, "unix:")
	if !unix {
		socket, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.address)
		if err != nil || o.follower.now.Admin.TLS == nil {
			return socket, err
		}
		return tls.NewListener(socket, &tls.Config{
			MinVersion:         tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.tls.Load(), nil },
		}), nil
	}
	if left, err := os.Stat(path); err == nil && left.Mode()&os.ModeSocket != 0 {
		if c, err := new(net.Dialer).DialContext(context.Background(), "unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s is in use", path)
		}
		_ = os.Remove(path) // of a process that was killed
	}
	socket, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	return socket, err
}

// secure reads the certificate of the address, if it has one.
func (o *operators) secure(c *config.Config) error {
	t, err := keys.Server(c.Admin.TLS, "h2", "http/1.1")
	if err == nil && t != nil {
		o.tls.Store(t)
	}
	return err
}

// serve serves operators until the server is closed.
func (o *operators) serve(socket net.Listener) {
	go func() {
		if err := o.server.Serve(socket); err != nil {
			o.logger.Error("the address for operators has failed", "error", err)
		}
	}()
	scheme := "http://"
	switch {
	case socket.Addr().Network() == "unix":
		scheme = "unix:"
	case o.tls.Load() != nil:
		scheme = "https://"
	}
	o.logger.Info("for operators", "dashboard", scheme+socket.Addr().String()+"/")
}

// access returns the configured access rules. A host name in the address is an allowed host.
func (o *operators) access() admin.Access {
	c := o.config.Load().Admin
	a := admin.Access{Hosts: c.Hosts, TokenFile: c.TokenFile, ReadTokenFile: c.ReadToken}
	if host, _, err := net.SplitHostPort(o.address); err == nil {
		a.Hosts = append(slices.Clone(a.Hosts), host)
	}
	return a
}

// took is called after a reload with the new configuration. It discards changes that were
// made over the API.
func (o *operators) took(c *config.Config) {
	if was := o.override.Swap(nil); was != nil {
		o.logger.Warn("a change over the API is dropped", "field", was.Field, "was", was.Value, "is", string(c.Defaulted().Mode))
	}
	if o.config.Load().Admin.Address != c.Admin.Address {
		o.logger.Warn("admin.address counts from the next start on")
	}
	if err := o.secure(c); err != nil {
		o.logger.Warn("the certificate for operators stays as it is", "error", err)
	}
	if !reflect.DeepEqual(o.config.Load().Otel, c.Otel) {
		o.logger.Warn("otel counts from the next start on")
	}
	o.use(c)
	o.events.use(c)
	if o.server != nil {
		o.server.Allow(o.access())
	}
}

// use sets the configuration that is in use. MongoDB commands pass the gates once per
// attempt, so they are collected by their end.
func (o *operators) use(c *config.Config) {
	o.config.Store(c)
	var keys []string
	for _, m := range c.Defaulted().Mongo {
		keys = append(keys, m.Name)
	}
	o.collector.ByEnd(slices.DeleteFunc(keys, func(key string) bool {
		return slices.ContainsFunc(c.Clusters, func(x config.Cluster) bool { return x.Name == key })
	})...)
}

// drain makes the proxy not ready, and rejects changes from now on.
func (o *operators) drain() { close(o.draining) }

func (o *operators) close() {
	if o.server == nil {
		return
	}
	if err := o.server.Close(); err != nil {
		o.logger.Warn("closing the address for operators", "error", err)
	}
	o.exporter.Close() // last, so that it sends the last figures
}

// errEnds is returned for changes while the proxy drains.
var errEnds = errors.New("draining")

// do makes a change in the goroutine of the follower, which makes all changes.
func (o *operators) do(change func(*follower) error) error {
	done := make(chan error, 1)
	select {
	case o.asks <- func() { done <- change(o.follower) }:
		return <-done
	case <-o.draining:
		return errEnds
	}
}

// SetMode implements [admin.Proxy].
func (o *operators) SetMode(mode spillway.Mode) error {
	return o.do(func(f *follower) error {
		wanted, file := *f.now, f.now.Defaulted().Mode
		wanted.Mode = config.Mode(mode.String())
		if err := f.proxy.Update(&wanted); err != nil {
			return err
		}
		o.config.Store(&wanted)
		o.events.note(false, "mode "+mode.String())
		if wanted.Mode == file {
			o.override.Store(nil)
			return nil
		}
		o.override.Store(&admin.Override{Field: "mode", Value: mode.String(), File: string(file), Since: time.Now()})
		f.logger.Warn("the mode differs from the configuration until that is next read", "mode", mode.String(), "configuration", string(file))
		return nil
	})
}

// Reload implements [admin.Proxy].
func (o *operators) Reload() error {
	return o.do(func(f *follower) error {
		if f.file == "" { // what the command line says
			err := f.proxy.Update(f.now)
			if err == nil {
				o.took(f.now)
			}
			return err
		}
		r := readingOf(f.file)
		if _, err := r.usable(); err != nil {
			return err
		}
		before := f.now
		if f.read("the API"); f.now == before {
			return errors.New("the configuration stays as it is; the log says why")
		}
		return nil
	})
}

// Ready implements [admin.Proxy].
func (o *operators) Ready() error {
	select {
	case <-o.draining:
		return errEnds
	default:
	}
	if !o.proxy.Serving() {
		return errors.New("nothing listens")
	}
	return nil
}

// Settings implements [admin.Proxy].
func (o *operators) Settings() (all []admin.Setting) {
	c := o.config.Load()
	given := make(map[string]bool)
	for _, line := range config.Given("", *c) {
		field, _, _ := strings.Cut(line, ": ")
		given[field] = true
	}
	for _, line := range config.Given("", *c.Defaulted()) {
		field, value, _ := strings.Cut(line, ": ")
		all = append(all, admin.Setting{Field: field, Value: value, Given: given[field]})
	}
	return all
}

// Levels implements [admin.Proxy].
func (o *operators) Levels(now time.Time) admin.Levels {
	c := o.config.Load().Defaulted()
	s := o.proxy.Stats(now)
	l := admin.Levels{Override: o.override.Load(), Draining: errors.Is(o.Ready(), errEnds)}
	l.Mode = modeOf(c.Mode)
	l.Notices, l.Changes = o.events.read(now)
	o.logs(&l, s.AccessLog)
	for i := range c.Listeners {
		if x, ok := s.Listeners[c.Listeners[i].Name]; ok {
			level := listenerLevel(o.proxy, c.Listeners[i].Name, x.Open, x.RejectedTotal)
			held := s.Clients[c.Listeners[i].Name]
			level.Clients = &admin.Clients{Requests: held.Requests, Waiting: held.Waiting, Evicted: held.Evicted, Rejected: held.Rejected}
			l.Listeners = append(l.Listeners, level)
		}
	}
	o.mongo(&l, c, s.Mongo)
	for i := range c.Clusters {
		x := &c.Clusters[i]
		for j := range s.Gates {
			if s.Gates[j].Cluster == x.Name {
				l.Gates = append(l.Gates, gateLevel(&s.Gates[j], c.Ingress(&config.Listener{}, x)))
			}
		}
		if stats, ok := s.Clusters[x.Name]; ok {
			l.Clusters = append(l.Clusters, clusterLevel(x, &stats))
		}
	}
	for i := range s.Quotas {
		l.Quotas = append(l.Quotas, quotaLevel(&s.Quotas[i]))
	}
	slices.SortStableFunc(l.Gates, func(a, b admin.Gate) int { return strings.Compare(a.Listener, b.Listener) })
	for i := range c.Clusters {
		if t, ok := s.Tuners[c.Clusters[i].Name]; ok {
			l.Tuned = append(l.Tuned, tunedLevel(tunedName(&c.Clusters[i]), &t.Stats))
		}
	}
	return l
}

// logs adds the state of the logs to l.
func (o *operators) logs(l *admin.Levels, access lines.Stats) {
	for _, log := range []struct {
		name, words string
		lines.Stats
	}{{"program", "log", o.follower.log.lines.Stats()}, {"access", "access log", access}} {
		l.Logs = append(l.Logs, admin.Log{Name: log.name, Lost: log.LostTotal})
		if n, lost := lostNotice(log.words, log.Stats); lost {
			l.Notices = append(l.Notices, n)
		}
	}
}

// mongo adds the levels of the MongoDB listeners.
func (o *operators) mongo(l *admin.Levels, c *config.Config, all []mongoproxy.Stats) {
	for i := range all {
		x := &all[i]
		l.Listeners = append(l.Listeners, listenerLevel(o.proxy, x.Listener, x.Connections.Open, x.Connections.RejectedTotal))
		for name, value := range x.Counts() {
			l.Mongo = append(l.Mongo, admin.Count{Listener: x.Listener, Name: name, Value: value})
		}
		gate := mongoGate(c, x)
		l.Gates = append(l.Gates, gate)
		l.Clusters = append(l.Clusters, mongoCluster(x, &gate))
		if x.Tuner != nil {
			l.Tuned = append(l.Tuned, tunedLevel(x.Listener+" ingressRequestAdmissionRatePerSec", &x.Tuner.Stats))
		}
	}
}

// quotaLevel returns the state of a quota that is shared with other proxies.
func quotaLevel(s *quotas.Stats) admin.Quota {
	q := admin.Quota{
		Name: s.Name, Syncs: s.SyncsTotal - s.ErrorsTotal - s.FencedTotal, Errors: s.ErrorsTotal, Fenced: s.FencedTotal,
		Leader: s.Leader, Tasks: s.Tasks, Age: s.Age, Conflict: s.ConfigConflict,
	}
	for _, c := range s.Customers {
		debt := time.Duration(min(c.Debt/c.Rate, 1e6) * float64(time.Second))
		q.Customers = append(q.Customers, admin.QuotaLevel{Customer: c.Name, Rate: c.Rate, Debt: debt, Marginal: c.Marginal})
	}
	return q
}

// tunedName returns the name of a cluster's tuned limit.
func tunedName(x *config.Cluster) string {
	if x.Tune != nil && x.Tune.Limit == config.TuneInFlight {
		return x.Name + " inflight.max_requests"
	}
	return x.Name + " rate_limit.rate"
}

// tunedLevel returns the state of a tuned limit.
func tunedLevel(name string, s *tune.Stats) admin.Tuned {
	t := admin.Tuned{Name: name, Value: finite(s.Limit), Least: finite(s.Min), Most: finite(s.Max), Moves: []admin.Move{}}
	if !s.Enforce {
		t.Name += " (observed)"
	}
	for _, m := range slices.Backward(s.Moves) {
		why := m.Reason()
		if !m.Applied {
			why = "not made: " + why
		}
		t.Moves = append(t.Moves, admin.Move{Time: m.Time, From: finite(m.From), To: finite(m.To), Why: why})
	}
	return t
}

// finite returns v, or 0 if v is not a finite number.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

func modeOf(m config.Mode) (mode spillway.Mode) {
	_ = mode.UnmarshalText([]byte(m)) // as Check has found it good
	return mode
}

// mongoGate returns the state of a MongoDB listener's gates. An HTTP listener may have the
// same name.
func mongoGate(c *config.Config, x *mongoproxy.Stats) admin.Gate {
	g := httpproxy.GateStats{
		Listener: x.Listener, Cluster: mongoName(c, x.Listener), Admitted: x.Admitted, InFlight: x.InFlight, Peak: x.Peak, Stats: x.Gate,
	}
	for i := range c.Mongo {
		if m := &c.Mongo[i]; m.Name == x.Listener {
			return gateLevel(&g, m.Ingress(c))
		}
	}
	return gateLevel(&g, ingress.Config{ShedMode: spillway.ModeOff, RateLimitMode: spillway.ModeOff})
}

// mongoName returns the name of the servers behind a MongoDB listener: that of the listener,
// unless a cluster has it.
func mongoName(c *config.Config, listener string) string {
	if slices.ContainsFunc(c.Clusters, func(x config.Cluster) bool { return x.Name == listener }) {
		return listener + " (mongodb)"
	}
	return listener
}

// mongoCluster returns the state of the servers behind a MongoDB listener.
func mongoCluster(x *mongoproxy.Stats, gate *admin.Gate) admin.Cluster {
	l := admin.Cluster{Name: gate.Cluster, InFlight: gate.InFlight, MaxInFlight: int(gate.Limit), Retries: x.Retries}
	if x.Budget.Capacity > 0 {
		l.Budget = &admin.Budget{Left: x.Budget.Tokens, Capacity: x.Budget.Capacity}
	}
	l.Endpoints = endpointLevels(x.Endpoints, false)
	return l
}

func listenerLevel(p *gateway.Proxy, name string, open int, refused uint64) admin.Listener {
	l := admin.Listener{Name: name, Open: open, Refused: refused}
	if a := p.Addr(name); a != nil {
		l.Address = a.String()
	}
	return l
}

// gateLevel returns the state of a gate. In observe mode no request really waits, and
// while the shedder is off its limit has no meaning.
func gateLevel(g *httpproxy.GateStats, c ingress.Config) admin.Gate {
	waiting := 0
	if c.ShedMode == spillway.ModeEnforce {
		waiting += g.Shed.Waiting
	}
	if c.RateLimitMode == spillway.ModeEnforce {
		waiting += g.RateLimit.Waiting
	}
	l := admin.Gate{
		Listener: g.Listener, Cluster: g.Cluster, Admitted: g.Admitted, Unlabelled: g.Unlabelled,
		InFlight: max(0, g.InFlight-waiting), Peak: g.Peak, Waiting: waiting, Busy: finite(g.Load.Utilization),
		Waits:      admin.Waits{Count: g.RateLimit.QueuedTotal - uint64(g.RateLimit.Waiting), Total: g.RateLimit.TimeQueued},
		RetryShare: g.Attempts.RetryShare, DontRetry: g.Attempts.DontRetry,
	}
	if c.ShedMode == spillway.ModeOff {
		return l
	}
	l.Adaptive, l.Least, l.Most = true, max(1, float64(c.Concurrency.Min)), max(0, float64(c.Concurrency.Max))
	l.Limit, l.Bound = finite(g.Concurrency.Tightest().Limit), g.Concurrency.Tightest().Limiting()
	l.Baseline = time.Duration(finite(g.Concurrency.Tightest().BaseLatency.Seconds()) * float64(time.Second))
	for class := range l.Refused {
		l.Refused[class] = g.Shed.Classes[class].RejectedRatio
	}
	return l
}

func clusterLevel(x *config.Cluster, s *upstream.Stats) admin.Cluster {
	l := admin.Cluster{Name: x.Name, InFlight: s.Egress.Inflight.InFlight, Retries: s.Retry.RetriesTotal - s.Retry.UnsentTotal}
	if x.Inflight.MaxRequests >= 0 {
		l.MaxInFlight = s.Egress.Inflight.MaxRequests
	}
	for class := range l.Throttle {
		l.Throttle[class] = s.Egress.Throttle[class].Probability
	}
	if s.Budget.Capacity > 0 {
		l.Budget = &admin.Budget{Left: s.Budget.Tokens, Capacity: s.Budget.Capacity}
	}
	if x.Batch != nil {
		q := s.Queue
		l.Queue = &admin.Queue{Busy: q.Busy, Places: q.Places, Waiting: q.Waiting, Waits: admin.Waits{Count: q.TurnsTotal, Total: q.Waited}}
	}
	l.Endpoints = endpointLevels(s.Endpoints, s.Panics)
	return l
}

func endpointLevels(all []upstream.EndpointStats, panics bool) (levels []admin.Endpoint) {
	for i := range all {
		e := &all[i]
		levels = append(levels, admin.Endpoint{
			Address: e.Address, InFlight: e.Busy, Attempts: e.Total, Errors: e.Errors, Answers: e.Answers, Took: e.Took, Down: downOf(e, panics),
		})
	}
	return levels
}

// downOf says why an endpoint gets no requests.
func downOf(e *upstream.EndpointStats, panics bool) string {
	switch {
	case e.Failed:
		return cmp.Or(e.Trouble, "cannot be connected to")
	case e.Health == upstream.Unhealthy && panics:
		return "unhealthy, as all are: used all the same"
	case e.Health == upstream.Unhealthy:
		return "unhealthy: " + e.Reason
	case e.State == balance.LeftOut && !panics:
		return "asked to be left alone for a while"
	case e.State == balance.Ejected && !panics:
		return "ejected for a while, as it failed more than others"
	default:
		return ""
	}
}
