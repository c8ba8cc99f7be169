package httpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/memory"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
)

// Config is what a proxy is started with.
type Config struct {
	// Config is the configuration, as a file has it. It is not changed.
	Config *config.Config
	// Logger is told of changes, and of upstreams that fail. Nil means nobody.
	Logger *slog.Logger
	// Observer, if not nil, is told of the decisions of all gates.
	Observer spillway.Observer
	// Accounts, if not nil, counts what becomes of requests of HTTP.
	Accounts *accounts.Book
	// Connect connects to the control plane that the configuration names. Nil means
	// that it may name none.
	Connect Connect
}

// A Proxy is one that runs. It is safe for concurrent use; make one with [Start].
type Proxy struct {
	logger   *slog.Logger
	observer spillway.Observer // of all gates
	book     *accounts.Book
	refusals *refusals       // which it is, while the proxy runs
	base     context.Context //nolint:containedctx // of all requests, as http.Server.BaseContext has it
	cancel   context.CancelFunc
	mongo    *mongoproxy.Proxy
	connect  Connect
	running  sync.WaitGroup // servers, and what was replaced and has still to end
	former   sync.WaitGroup // listeners that were replaced, as long as they drain

	mu        sync.Mutex // one change at a time
	closed    bool
	config    *config.Config
	listeners map[string]*listener // by name
	clusters  map[string]*cluster  // by name
	gates     map[gateKey]*gate
	tunings   map[string]*tuning    // by cluster
	plane     upstream.ControlPlane // nil: there is none
}

// Start starts a proxy, or returns what is wrong with its configuration or with what
// it needs. It runs until it is told to [Proxy.Drain] or [Proxy.Close]; when ctx ends,
// so do all requests, but not the proxy.
func Start(ctx context.Context, c Config) (*Proxy, error) {
	p := &Proxy{
		logger: c.Logger, config: &config.Config{}, connect: c.Connect,
		listeners: make(map[string]*listener), clusters: make(map[string]*cluster), gates: make(map[gateKey]*gate),
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	p.refusals = newRefusals(p.logger, c.Observer)
	p.book = cmp.Or(c.Accounts, new(accounts.Book))
	p.observer = &bookkeeper{next: p.refusals, book: p.book}
	p.base, p.cancel = context.WithCancel(ctx)
	p.mongo = mongoproxy.New(p.base, p.logger, p.refusals)
	if err := p.Update(c.Config); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// errClosed is returned for a change of a proxy that has ended.
var errClosed = errors.New("proxy: closed")

// Update puts another configuration in place, as a whole, or returns what is wrong
// and changes nothing. Files that the configuration names, such as certificates, are
// read anew. What has changed is logged.
func (p *Proxy) Update(c *config.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	if err := c.Check(); err != nil {
		return err
	}
	c = c.Defaulted()
	fit(c, openFiles(), p.logger)
	memory.Process.SetLimit(c.MaxBuffered)
	m, err := p.mongo.Prepare(c)
	if err != nil {
		return err
	}
	n, err := p.prepare(c)
	if err != nil {
		m.Abandon()
		return err
	}
	m.Commit()
	p.commit(n)
	return nil
}

// Addr returns the address of a listener, by its name; the name "" is that of the
// first. It is nil if there is none.
func (p *Proxy) Addr(name string) net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" && len(p.config.Listeners) > 0 {
		name = p.config.Listeners[0].Name
	}
	l := p.listeners[name]
	if l == nil {
		return p.mongo.Addr(name)
	}
	return l.socket.Addr()
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
	return p.mongo.Serving()
}

// Drain ends the proxy: it accepts no more connections, lets requests under way end,
// for as long as ctx and the configuration allow, and closes all that is left. It
// returns an error if something was cut off, and at once if it was called before.
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
	var all sync.WaitGroup
	errs := make(chan error, len(p.listeners)+2)
	all.Go(func() { errs <- p.mongo.Drain(ctx) })
	for _, l := range p.listeners {
		all.Go(func() { errs <- l.drain(ctx) })
	}
	all.Go(func() { errs <- p.leaveFormer(ctx) })
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
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

// leaveFormer waits until listeners that were replaced have drained, as long as ctx
// allows.
func (p *Proxy) leaveFormer(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		p.former.Wait() // ends with the requests at the latest
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the proxy at once: requests under way are cut off.
func (p *Proxy) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Drain(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Stats says how a [Proxy] stands.
type Stats struct {
	Listeners map[string]ingress.ListenerStats
	Clients   map[string]clients.Stats // of listeners
	Memory    memory.Stats             // bytes that are kept for clients
	Gates     []GateStats
	Clusters  map[string]upstream.Stats
	Mongo     []mongoproxy.Stats     // of listeners for clients of MongoDB
	Tuners    map[string]tuner.Stats // of clusters that have one: the limit, and its last moves
}

// GateStats says how the gate of a listener and a cluster stands.
type GateStats struct {
	Listener, Cluster string
	Requests          uint64 // that have come, whatever became of them
	Admitted          uint64 // that were let in, to wait for their turn or to be sent
	Unlabelled        uint64 // that came without a criticality of their own
	InFlight          int    // requests under way, those that wait included
	Peak              int    // the most of them at once, since Stats was last called
	ingress.Stats
}

// Stats returns the levels of all policies at the time now.
func (p *Proxy) Stats(now time.Time) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Listeners: make(map[string]ingress.ListenerStats), Clients: make(map[string]clients.Stats), Memory: memory.Process.Stats(),
		Clusters: make(map[string]upstream.Stats), Tuners: make(map[string]tuner.Stats),
	}
	for name, l := range p.listeners {
		s.Listeners[name], s.Clients[name] = l.accept.Stats(now), l.clients.Stats()
	}
	for key, g := range p.gates {
		s.Gates = append(s.Gates, GateStats{
			Listener: key.listener, Cluster: key.cluster, Requests: g.requests.Load(), Admitted: g.admitted.Load(),
			Unlabelled: g.unlabelled.Load(), InFlight: g.users.count(), Peak: g.users.peak(), Stats: g.ingress.Stats(now),
		})
	}
	for name, x := range p.clusters {
		s.Clusters[name] = x.Stats(now)
	}
	for name, t := range p.tunings {
		s.Tuners[name] = t.tuner.Stats()
	}
	s.Mongo = p.mongo.Stats(now)
	return s
}

// wrap says in which part of the configuration an error was found.
func wrap(part, name string, err error) error { return fmt.Errorf("%s %s: %w", part, name, err) }
