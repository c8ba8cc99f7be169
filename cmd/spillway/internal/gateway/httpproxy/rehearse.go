package httpproxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accesslog"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
)

// A Rehearsal is one listener without its socket. Requests run through the code that serves
// traffic; the caller provides the connections to endpoints. It serves one request at a time.
type Rehearsal struct {
	listener listener
	settings *settings
	clusters map[string]*cluster
	gates    map[gateKey]*gate
}

// Rehearse returns a Rehearsal for a configuration with its defaults. It must be closed, after
// its connections.
func Rehearse(
	c *config.Config, l *config.Listener, dial func(ctx context.Context, network, address string) (net.Conn, error), o spillway.Observer,
) (*Rehearsal, error) {
	n := &next{config: c, clusters: make(map[string]*cluster), gates: make(map[gateKey]*gate)}
	x := &Rehearsal{clusters: n.clusters, gates: n.gates}
	p := &Proxy{logger: slog.New(slog.DiscardHandler), observer: o}
	err := p.rehearse(n, dial)
	if err == nil {
		x.settings, err = p.makeSettings(n, l)
	}
	if err != nil {
		x.Disconnect()
		return nil, errors.Join(err, x.Close())
	}
	for _, g := range x.gates {
		g.settings.Store(x.settings)
	}
	x.listener.settings.Store(x.settings)
	x.listener.book, x.listener.decided = new(accounts.Book), decisions.New(nil) // which nobody reads
	x.listener.access = new(atomic.Pointer[accesslog.Log])
	return x, nil
}

// rehearse makes clusters that send only requests: no health checks, and no fetches of load
// reports.
func (p *Proxy) rehearse(n *next, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	for i := range n.config.Clusters {
		named := n.config.Clusters[i]
		named.Health = nil
		if l := named.Balance.LoadReports; l != nil {
			silent := *l
			silent.OutOfBandPeriod = 0
			named.Balance.LoadReports = &silent
		}
		u, err := upstream.Make(upstream.Options{Config: n.config, Cluster: &named, Observer: p.observer, Dial: dial})
		if err != nil {
			return err
		}
		x := &cluster{Cluster: upstream.New(named.Name)}
		n.clusters[named.Name] = x
		x.replace(context.Background(), p.logger, u)
	}
	return nil
}

// Routes returns the routes of the listener.
func (x *Rehearsal) Routes() *routes.Table { return x.settings.table }

// Judge returns the gate's classification of a request, and what the request claims.
func (x *Rehearsal) Judge(to *routes.Route, now time.Time, r *http.Request) (spillway.Call, ingress.Claims) {
	return x.settings.targets[to.Index].gate.handler.Judge(now, r)
}

// Exempt reports whether a request bypasses the gate of a route.
func (x *Rehearsal) Exempt(to *routes.Route, r *http.Request) bool {
	return x.settings.targets[to.Index].gate.exempt(r)
}

// ServeHTTP implements [http.Handler].
func (x *Rehearsal) ServeHTTP(w http.ResponseWriter, r *http.Request) { x.listener.ServeHTTP(w, r) }

// Disconnect closes the connections to endpoints.
func (x *Rehearsal) Disconnect() {
	for _, c := range x.clusters {
		c.Close()
	}
}

// Close closes the gates. The observer has received all of their events when it returns.
func (x *Rehearsal) Close() (err error) {
	for _, g := range x.gates {
		err = errors.Join(err, g.ingress.Close())
	}
	return err
}
