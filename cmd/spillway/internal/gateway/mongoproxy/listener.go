package mongoproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/servers"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/retry"
)

// settings are the settings that can change while a listener serves. They are replaced as a
// whole, and apply to each connection from its next command on.
type settings struct {
	config           *config.Mongo
	all              *config.Config
	tls, upstreamTLS *tls.Config       // nil: in the clear
	strategy         *retry.MongoDB    // nil: nothing is sent again
	budget           *budget.Endpoints // of the strategy; nil: without a limit
	rejections       rejections
	byDatabase       bool // a class or a customer depends on the database
}

func newSettings(all *config.Config, m *config.Mongo, old *settings) (*settings, error) {
	s := &settings{config: m, all: all, rejections: newRejections(m)}
	for _, x := range m.Classes {
		s.byDatabase = s.byDatabase || len(x.Databases) > 0 || x.Customer == "database"
	}
	var err error
	if s.tls, err = keys.Server(m.TLS); err != nil {
		return nil, err
	}
	secrets, err := keys.Client(m.UpstreamTLS)
	if err != nil {
		return nil, err
	}
	s.upstreamTLS = secrets.Config
	if old != nil && old.config.Retry == m.Retry && old.all.Mode == all.Mode {
		s.strategy, s.budget = old.strategy, old.budget
		return s, nil
	}
	s.strategy, s.budget, err = m.Strategy(all)
	return s, err
}

// counts are the counters of a listener.
type counts struct {
	commands, exempt, admitted, dropped, overloads, retries, rescued atomic.Uint64

	working resources.Users
	backoff atomic.Int64 // in nanoseconds
	closed  [Reasons]atomic.Uint64
}

// A listener serves what comes to one address.
type listener struct {
	settings  atomic.Pointer[settings]
	socket    net.Listener
	accept    *connlimit.Listener
	resets    *resets.Log
	gate      *ingress.Server
	endpoints *servers.Set
	cursors   cursors
	proxy     *Proxy
	bounded   *slog.Logger // for lines that untrusted clients can cause
	counts    counts

	base     context.Context //nolint:containedctx // of all connections
	cancel   context.CancelFunc
	draining atomic.Bool
	running  sync.WaitGroup // the loops and the connections

	mu    sync.Mutex
	conns map[*conn]struct{}

	tune   sync.Mutex             // of changes of the gate
	tuning atomic.Pointer[tuning] // nil: its limits stay
}

// logRate is the maximum number of log lines per second about connections of a listener.
const logRate = 10

// newListener opens a listener. It does not serve yet.
func (p *Proxy) newListener(s *settings) (*listener, error) {
	l := &listener{
		proxy: p, endpoints: servers.New(), conns: make(map[*conn]struct{}), resets: resets.New(p.with.Logger, s.config.Name, true),
	}
	l.settings.Store(s)
	l.endpoints.Update(s.config.Endpoints)
	var err error
	if l.bounded, err = loglimit.New(p.with.Logger, logRate); err != nil {
		return nil, err
	}
	if l.gate, err = ingress.New(l.ingress(s)); err != nil {
		return nil, err
	}
	if l.socket, err = (&net.ListenConfig{}).Listen(p.base, "tcp", s.config.Address); err != nil {
		_ = l.gate.Close() // what is wrong is said by err
		return nil, err
	}
	l.base, l.cancel = context.WithCancel(p.base)
	return l, nil
}

func (l *listener) ingress(s *settings) ingress.Config {
	c := s.config.Ingress(s.all)
	c.Observer = l.proxy.with.Observer
	l.proxy.with.Quotas.Share(&c.Quota, s.all, s.config.Name, s.config.Quota)
	if t := l.tuning.Load(); t != nil {
		c.RateLimit.Rate = t.tuner.Limit()
	}
	return c
}

// discard undoes newListener.
func (l *listener) discard() {
	l.cancel()
	_ = l.socket.Close() // it was not used
	_ = l.gate.Close()   // as above
}

func (l *listener) serve() error {
	var err error
	l.accept, err = connlimit.NewListener(l.socket, l.connections(l.settings.Load()))
	if err != nil {
		return err
	}
	if err := l.updateGate(l.settings.Load()); err != nil {
		return err
	}
	l.running.Go(l.loop)
	l.running.Go(l.watch)
	return nil
}

func (l *listener) connections(s *settings) connlimit.Config {
	all := s.config.Connections()
	all.Rejected = l.resets.Rejected
	return all
}

func (l *listener) loop() {
	for {
		nc, err := l.accept.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				l.proxy.with.Logger.Error("a listener has failed", "listener", l.settings.Load().config.Name, "error", err)
			}
			return
		}
		c := l.newConn(nc)
		l.mu.Lock()
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		if l.draining.Load() { // drain may have looked for it before
			c.kill(&end{Drained, nil})
		}
		l.running.Go(func() { l.over(c, c.serve()) })
	}
}

func (l *listener) over(c *conn, why *end) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	l.counts.closed[why.reason].Add(1)
	if why.reason > Idle {
		l.bounded.Warn("a connection was closed", "listener", l.settings.Load().config.Name, "client", c.address.String(),
			"reason", why.reason.String(), "error", why.err)
	}
}

func (l *listener) each(f func(*conn)) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// watchEvery is the interval at which connections without progress are checked.
const watchEvery = time.Second

// watch closes connections whose other side has hung up: the client while a command runs, the
// server while the connection is idle.
func (l *listener) watch() {
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			l.each((*conn).look)
		case <-l.base.Done():
			return
		}
	}
}

// look checks the other side, if the connection has made no progress since the last check.
func (c *conn) look() {
	turn := c.turn.Load()
	if turn != c.looked {
		c.looked = turn
		return
	}
	switch {
	case !c.whole.Load() && c.listener.nearlyFull() && time.Since(c.opened) > hurriedHandshake:
		c.kill(&end{Stalled, errors.New("no first message within a second, and most connections are taken")})
	case turn%2 == 1 && wire.HungUp(c.socket):
		c.kill(&end{Left, errLeft})
	case turn%2 == 0 && c.reached.Load() && wire.HungUp(c.up.Conn):
		c.kill(&end{HungUp, errors.New("the server has hung up")})
	}
}

// hurriedHandshake is the time for the first message while the listener is nearlyFull: a
// round trip to the other side of the world, three times, with TLS.
const hurriedHandshake = time.Second

// nearlyFull reports whether three quarters of the connections are taken. Silent clients must
// then not keep others out.
func (l *listener) nearlyFull() bool {
	limit := l.settings.Load().config.MaxConnections
	return limit > 0 && l.open() > limit/4*3
}

// update applies other settings, which were checked. Connections to removed servers close when
// they are idle.
func (l *listener) update(s *settings) error {
	l.endpoints.Update(s.config.Endpoints)
	l.each(func(c *conn) {
		if c.leaving() {
			c.interrupt()
		}
	})
	return errors.Join(l.updateGate(s), l.accept.Update(l.connections(s)))
}

func (l *listener) updateGate(s *settings) error {
	l.tune.Lock()
	defer l.tune.Unlock()
	l.settings.Store(s)
	if err := l.retune(s); err != nil {
		return err
	}
	return l.gate.Update(l.ingress(s))
}

// drain stops accepting and waits for commands to end until ctx is done. It then cuts off the
// remaining commands and returns an error.
func (l *listener) drain(ctx context.Context) error {
	_ = l.accept.Close() // an error says that it is closed
	l.draining.Store(true)
	again := time.NewTicker(drainEvery)
	defer again.Stop()
	var err error
	for err == nil && l.open() > 0 {
		l.each((*conn).interrupt)
		select {
		case <-again.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	l.each(func(c *conn) { c.kill(&end{Drained, err}) })
	l.cancel()
	l.running.Wait()
	return errors.Join(err, l.gate.Close())
}

// drainEvery is the interval at which drain closes idle connections.
const drainEvery = 20 * time.Millisecond

func (l *listener) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}
