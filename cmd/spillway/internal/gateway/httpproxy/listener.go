package httpproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/longheads"
	"github.com/seed90641741/spillway/spillhttp"
)

// settings are the settings that can change while a listener serves. They are replaced as a
// whole.
type settings struct {
	config    *config.Listener
	internal  bool
	table     *routes.Table
	targets   []target         // of its routes, in their order
	discloses ingress.Reasons  // why a request is rejected
	bounds    *clients.Bounds  // of requests that no route matches
	counts    *accounts.Counts // likewise; nil until the settings are in use
	peers     []netip.Prefix
	keepsID   bool        // requests keep the id that their client gives them
	tls       *tls.Config // nil: in the clear
	draining  atomic.Bool
}

// A target is a route with its gate and bounds.
type target struct {
	*routes.Route

	gate   *gate
	bounds *clients.Bounds
	counts *accounts.Counts // nil until the settings are in use
}

// count has the requests of the listener counted in book, by route.
func (s *settings) count(book *accounts.Book) {
	s.counts = book.At(placeOf(s.config.Name, ""))
	for i := range s.targets {
		s.targets[i].counts = book.At(placeOf(s.config.Name, s.targets[i].Name))
	}
}

// alike reports whether a listener with these settings can adopt the settings o without a
// restart. Its open connections were let in by what it has asked of them.
func (s *settings) alike(o *settings) bool {
	a, b := s.config, o.config
	if s.tls != nil && o.tls != nil && (a.TLS.ClientCA != b.TLS.ClientCA || a.TLS.Optional != b.TLS.Optional) {
		return false
	}
	return a.Boundary == b.Boundary && slices.Equal(a.Peers, b.Peers) &&
		a.Address == b.Address && (s.tls == nil) == (o.tls == nil) && a.MaxStreams == b.MaxStreams &&
		a.MaxHeaderBytes == b.MaxHeaderBytes && a.HeaderTimeout == b.HeaderTimeout &&
		a.WriteTimeout == b.WriteTimeout && a.IdleTimeout == b.IdleTimeout // all else is read for each request
}

func (s *settings) match(r *http.Request) *target {
	if x := s.table.Match(r); x != nil {
		return &s.targets[x.Index]
	}
	return nil
}

// A listener serves what comes to one address.
type listener struct {
	proxy    *Proxy
	socket   *net.TCPListener
	settings atomic.Pointer[settings]
	accept   *connlimit.Listener // once it serves
	server   *http.Server
	served   chan struct{} // closed when it accepts no more
	cancel   context.CancelFunc
	resets   *resets.Log
	clients  *clients.Set
	users    resources.Users // requests, those that have taken over their connection included
}

// listen opens a listener. If another listener has the address already, its socket is shared,
// so that connections in the accept queue are not lost. The port 0 is a different port for
// each name.
func (p *Proxy) listen(l *config.Listener) (net.Listener, error) {
	for name, old := range p.listeners {
		if old.settings.Load().config.Address != l.Address || name != l.Name && strings.HasSuffix(l.Address, ":0") {
			continue
		}
		f, err := old.socket.File()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return net.FileListener(f)
	}
	return (&net.ListenConfig{}).Listen(p.base, "tcp", l.Address)
}

// serve starts the listener, whose settings have been stored.
func (l *listener) serve() {
	p, s := l.proxy, l.settings.Load()
	c := s.config
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(p.base)
	l.resets = resets.New(p.with.Logger, c.Name, false)
	l.clients = clients.New(c.MaxRequests, c.IdleTimeout)
	l.clients.SetCosts(c.HandshakeCost, c.IdleCost)
	l.server = &http.Server{
		Handler:           l,
		ReadHeaderTimeout: c.HeaderTimeout,
		MaxHeaderBytes:    c.MaxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return spillhttp.ConnContext(longheads.Context(l.clients.Open(ctx, conn), conn), conn)
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			spillhttp.ConnState(conn, state)
			longheads.State(conn, state)
			l.clients.State(conn, state)
		},
		ErrorLog:  slog.NewLogLogger(p.with.Logger.Handler(), slog.LevelDebug), // what clients do wrong
		Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: c.MaxStreams, SendPingTimeout: upstream.PingAfter, PingTimeout: upstream.PingTimeout,
			WriteByteTimeout: max(0, c.WriteTimeout),
			MaxReadFrameSize: 16 << 10, // the least there is: the server keeps a buffer of it for each connection
		},
		DisableGeneralOptionsHandler: true, // they are the upstream's
	}
	l.server.Protocols.SetHTTP1(true)
	l.server.Protocols.SetHTTP2(true)
	l.server.Protocols.SetUnencryptedHTTP2(true)
	var err error
	l.accept, err = connlimit.NewListener(&clients.Listener{
		Listener: l.socket, Timeout: c.WriteTimeout, Peers: func() []netip.Prefix { return l.settings.Load().peers }, Resets: l.resets,
	}, l.connections(c))
	p.impossible(err) // it was checked
	l.served = make(chan struct{})
	p.running.Go(func() { l.clients.Watch(ctx, l.watchEvery) })
	p.running.Go(func() {
		defer close(l.served)
		if err := l.run(s.tls != nil); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			p.with.Logger.Error("a listener has failed", "listener", c.Name, "error", err)
		}
	})
}

// connections returns what of a listener concerns connections.
func (l *listener) connections(c *config.Listener) connlimit.Config {
	all := c.Connections()
	all.Near, all.Rejected, all.Work = l.clients.Admit, l.resets.Rejected, l.work
	return all
}

// work is that of all gates: see [connlimit.Config].
func (l *listener) work(now time.Time) (begun uint64, cpu float64) {
	seen := make(map[*gate]bool)
	for _, t := range l.settings.Load().targets {
		if !seen[t.gate] {
			seen[t.gate] = true
			_, used := t.gate.ingress.Work(now)
			begun, cpu = begun+t.gate.admitted.Load(), max(cpu, used)
		}
	}
	return begun, cpu
}

// watchEvery is how often exchanges are looked at.
func (l *listener) watchEvery() time.Duration {
	s := l.settings.Load()
	least := s.bounds.Least()
	for i := range s.targets {
		least = min(least, s.targets[i].bounds.Least())
	}
	return least
}

func (l *listener) run(secured bool) error {
	if !secured {
		return l.server.Serve(&early{l.accept, l})
	}
	l.server.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return l.settings.Load().tls, nil
		},
	}
	return l.server.ServeTLS(l.accept, "", "")
}

// drain stops accepting and waits for requests to end until ctx is done. It then cuts off the
// remaining requests and returns an error.
func (l *listener) drain(ctx context.Context) error {
	defer l.cancel()
	_ = l.socket.Close() // an error says that it is closed already
	<-l.served
	s := l.settings.Load()
	s.draining.Store(true)
	// For Shutdown, a connection of HTTP/1.1 is idle until the whole head of a request has arrived, and it
	// closes it: requests that were sent would be lost. So all of them must have ended before.
	l.clients.Drain(ctx, s.config.HeaderTimeout)
	err := l.server.Shutdown(ctx)
	none := l.users.Retire()
	if err == nil {
		select {
		case <-none:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	l.cancel()
	err = errors.Join(err, l.server.Close())
	<-none
	return err
}
