package mongoproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// A Proxy has all listeners for MongoDB clients. It is safe for concurrent use; make one with
// [New], give it a configuration with [Proxy.Prepare], and end it with [Proxy.Drain].
type Proxy struct {
	with    Config          // with its defaults
	base    context.Context //nolint:containedctx // of all connections
	running sync.WaitGroup  // listeners that end
	ending  context.Context //nolint:containedctx // for as long as they may
	cut     context.CancelFunc

	mu        sync.Mutex
	closed    bool
	listeners map[string]*listener // by what keeps them
}

// Config is what a [Proxy] reports to and shares with others. All fields may be nil.
type Config struct {
	// Logger receives failures.
	Logger *slog.Logger
	// Observer receives the decisions of the gates, and the outcome of each command.
	Observer spillway.Observer
	// Accounts counts how each command ends. Hello, and commands that authenticate, are not counted.
	Accounts *accounts.Book
	// Decisions receives the rejections that no gate made. The others come by Observer.
	Decisions *decisions.Log
	// Quotas are shared with other proxies. With nil they are not shared.
	Quotas *quotas.Set
}

// New returns a Proxy without listeners. When ctx ends, all connections end.
func New(ctx context.Context, c Config) *Proxy {
	c.Logger, c.Accounts = cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), cmp.Or(c.Accounts, new(accounts.Book))
	c.Decisions = cmp.Or(c.Decisions, decisions.New(nil))
	p := &Proxy{with: c, base: ctx, listeners: make(map[string]*listener)}
	p.ending, p.cut = context.WithCancel(ctx)
	return p
}

// keyOf returns the key that identifies a listener across configurations: its address, with
// its name if the port is 0.
func keyOf(m *config.Mongo) string {
	if strings.HasSuffix(m.Address, ":0") {
		return m.Name + " " + m.Address
	}
	return m.Address
}

// A Change is a configuration that is ready to be applied. Exactly one of its methods must be
// called, soon: until then no other change can be prepared.
type Change struct {
	proxy    *Proxy
	config   *config.Config
	settings map[string]*settings
	fresh    map[string]*listener
}

var errClosed = errors.New("mongoproxy: closed")

// Prepare creates everything that a configuration needs. The configuration must have been
// checked and have its defaults. If Prepare fails, nothing has changed.
func (p *Proxy) Prepare(c *config.Config) (*Change, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	n := &Change{proxy: p, config: c, settings: make(map[string]*settings), fresh: make(map[string]*listener)}
	for i := range c.Mongo {
		if err := n.add(&c.Mongo[i]); err != nil {
			n.Abandon()
			return nil, fmt.Errorf("mongo %s: %w", c.Mongo[i].Name, err)
		}
	}
	return n, nil
}

func (n *Change) add(m *config.Mongo) error {
	key := keyOf(m)
	var old *settings
	kept := n.proxy.listeners[key]
	if kept != nil {
		old = kept.settings.Load()
	}
	s, err := newSettings(n.config, m, old)
	if err != nil {
		return err
	}
	n.settings[key] = s
	if kept == nil {
		n.fresh[key], err = n.proxy.newListener(s)
	}
	return err
}

// Abandon discards the change.
func (n *Change) Abandon() {
	for _, l := range n.fresh {
		if l != nil {
			l.discard()
		}
	}
	n.proxy.mu.Unlock()
}

// Commit applies the configuration. Connections of removed listeners and to removed servers
// end after their command in flight.
func (n *Change) Commit() {
	p := n.proxy
	defer p.mu.Unlock()
	for key, l := range p.listeners {
		if s := n.settings[key]; s != nil {
			p.impossible(l.update(s))
			continue
		}
		delete(p.listeners, key)
		p.running.Go(func() {
			ctx, cancel := context.WithTimeout(p.ending, n.config.DrainTimeout)
			defer cancel()
			if err := l.drain(ctx); err != nil {
				p.with.Logger.Warn("commands of a former listener were cut off", "error", err)
			}
		})
	}
	for key, l := range n.fresh {
		p.impossible(l.serve())
		p.listeners[key] = l
	}
}

// impossible logs an error that cannot occur, as the configuration was checked.
func (p *Proxy) impossible(err error) {
	if err != nil {
		p.with.Logger.Error("a part of the configuration was not changed", "error", err)
	}
}

// Serving reports whether there is a listener that accepts connections.
func (p *Proxy) Serving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		if !l.draining.Load() {
			return true
		}
	}
	return false
}

// Addr returns the address of the named listener, or nil if it does not exist.
func (p *Proxy) Addr(name string) net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		if l.settings.Load().config.Name == name {
			return l.socket.Addr()
		}
	}
	return nil
}

// Drain shuts the proxy down: it stops accepting connections, waits for commands in flight
// until ctx is done, and closes the rest. It returns an error if a command of a current
// listener was cut off; for former listeners this is only logged.
func (p *Proxy) Drain(ctx context.Context) error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true // from here on nothing changes
	p.mu.Unlock()
	if closed {
		return nil
	}
	ends := make(chan error, len(p.listeners))
	for _, l := range p.listeners {
		go func() { ends <- l.drain(ctx) }()
	}
	var err error
	for range p.listeners {
		err = errors.Join(err, <-ends)
	}
	defer context.AfterFunc(ctx, p.cut)()
	p.running.Wait()
	p.cut()
	return err
}
