package httpproxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/tune"
)

// Config is what a proxy is started with.
type Config struct {
	// Logger receives changes of the configuration and failures of upstreams. Nil discards them.
	Logger *slog.Logger
	// Observer, if not nil, receives the decisions of all gates.
	Observer spillway.Observer
	// Accounts, if not nil, counts the outcomes of HTTP requests.
	Accounts *accounts.Book
	// Decisions, if not nil, receives the rejections that no policy made. The Observer has those
	// of policies.
	Decisions *decisions.Log
	// Tracer, if not nil, makes spans of requests.
	Tracer *exporters.Tracer
	// Connect connects to the control plane that the configuration names. Nil means
	// that it may name none.
	Connect Connect
	// Quotas has the quotas that are shared with other proxies. Nil shares no quotas.
	Quotas *quotas.Set
}

// Connect connects to a control plane in the background. An unreachable control plane is no
// error.
type Connect func(x *config.XDS, logger *slog.Logger) (upstream.ControlPlane, error)

// A Proxy is a running proxy. It is safe for concurrent use; create one with [New].
type Proxy struct {
	with    Config                         // with its defaults
	access  atomic.Pointer[logs.AccessLog] // nil: there is none
	base    context.Context                //nolint:containedctx // of all requests, as http.Server.BaseContext has it
	cancel  context.CancelFunc
	running sync.WaitGroup  // servers, and what was replaced and has still to end
	former  resources.Users // listeners that were replaced, as long as they drain

	mu      sync.Mutex // one change at a time
	closed  bool
	tunings map[string]*tuning // by cluster
	state
}

// A state is a configuration and what serves it.
type state struct {
	config    *config.Config
	listeners map[string]*listener // by name
	clusters  map[string]*cluster  // by name
	gates     map[gateKey]*gate
	policies  map[gateKey]ingress.Config // of gates
	plane     upstream.ControlPlane      // nil: there is none
}

func newState(c *config.Config) state {
	return state{
		config: c, listeners: make(map[string]*listener), clusters: make(map[string]*cluster),
		gates: make(map[gateKey]*gate), policies: make(map[gateKey]ingress.Config),
	}
}

// New returns a Proxy without listeners. When ctx ends, all requests are canceled. The proxy
// itself runs until [Proxy.Drain] is called.
func New(ctx context.Context, c Config) *Proxy {
	c.Logger, c.Accounts = cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), cmp.Or(c.Accounts, new(accounts.Book))
	c.Decisions = cmp.Or(c.Decisions, decisions.New(nil))
	if c.Observer == nil {
		c.Observer = spillway.ObserverFunc(func(spillway.Event) {})
	}
	p := &Proxy{with: c, state: newState(&config.Config{})}
	p.base, p.cancel = context.WithCancel(ctx)
	return p
}

// SetAccessLog sets the log for requests that end from now on; nil turns it off. It returns
// the previous log.
func (p *Proxy) SetAccessLog(l *logs.AccessLog) (former *logs.AccessLog) { return p.access.Swap(l) }

// Addr returns the address of the named listener, or nil if it does not exist. The name ""
// selects the first listener.
func (p *Proxy) Addr(name string) net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" && len(p.config.Listeners) > 0 {
		name = p.config.Listeners[0].Name
	}
	if l := p.listeners[name]; l != nil {
		return l.socket.Addr()
	}
	return nil
}

// Serving reports whether there is a listener that accepts connections.
func (p *Proxy) Serving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		select {
		case <-l.served:
		default:
			return true
		}
	}
	return false
}

// Drain shuts the proxy down: it stops accepting connections, waits for in-flight requests
// until ctx is done or the drain timeout expires, and closes the rest. It returns an error if
// a request was cut off. A second call returns immediately.
func (p *Proxy) Drain(ctx context.Context) error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true // from here on nothing changes
	p.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.DrainTimeout)
	defer cancel()
	ends := make(chan error, len(p.listeners))
	for _, l := range p.listeners {
		go func() { ends <- l.drain(ctx) }()
	}
	var err error
	select {
	case <-p.former.Retire():
	case <-ctx.Done():
		err = ctx.Err()
	}
	for range p.listeners {
		err = errors.Join(err, <-ends)
	}
	p.cancel() // of requests that have taken their connection over, too
	for _, g := range p.gates {
		p.retire(g)
	}
	for _, x := range p.clusters {
		x.Close()
	}
	p.running.Wait()
	p.leave(p.plane)
	return err
}

// Stats is a snapshot of a [Proxy].
type Stats struct {
	Listeners map[string]connlimit.Stats
	Clients   map[string]clients.Stats // of listeners
	Resets    map[string]resets.Counts // of connections of listeners
	Gates     []GateStats
	Clusters  map[string]upstream.Stats
	Tuners    map[string]tune.Stats // of clusters that have one: the limit, and its last moves
	AccessLog logs.Stats
}

// GateStats is a snapshot of the gate of a listener and a cluster.
type GateStats struct {
	Listener, Cluster string
	Requests          uint64 // that have come, whatever became of them
	Admitted          uint64 // that were let in, to wait for their turn or to be sent
	Unlabelled        uint64 // that came without a criticality of their own
	InFlight          int    // requests in flight, including those that wait
	Peak              int    // the most of them at once, since Stats was last called
	ingress.Stats
}

// Stats returns the levels of all policies at the time now.
func (p *Proxy) Stats(now time.Time) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Listeners: make(map[string]connlimit.Stats), Clients: make(map[string]clients.Stats), Resets: make(map[string]resets.Counts),
		Clusters: make(map[string]upstream.Stats), Tuners: make(map[string]tune.Stats),
		AccessLog: p.access.Load().Stats(),
	}
	for name, l := range p.listeners {
		s.Listeners[name], s.Clients[name], s.Resets[name] = l.accept.Stats(now), l.clients.Stats(), l.resets.Counts()
	}
	for key, g := range p.gates {
		s.Gates = append(s.Gates, GateStats{
			Listener: key.listener, Cluster: key.cluster, Requests: g.requests.Load(), Admitted: g.admitted.Load(),
			Unlabelled: g.unlabelled.Load(), InFlight: g.users.Count(), Peak: g.users.Peak(), Stats: g.ingress.Stats(now),
		})
	}
	for name, x := range p.clusters {
		s.Clusters[name] = x.Stats(now)
	}
	for name, t := range p.tunings {
		s.Tuners[name] = t.tuner.Stats(now)
	}
	return s
}
