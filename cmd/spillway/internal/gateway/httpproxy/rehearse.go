package httpproxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
)

// A Rehearsal is one listener without its socket. Requests run through the code that serves
// traffic; the caller provides the connections to endpoints. It serves one request at a time.
type Rehearsal struct {
	listener listener
	settings *settings
	change   *Change
}

// Rehearse returns a Rehearsal for a configuration with its defaults. It must be closed, after
// its connections.
func Rehearse(c *config.Config, l *config.Listener, dial upstream.DialFunc, o spillway.Observer) (*Rehearsal, error) {
	p := New(context.Background(), Config{Observer: o})
	x := &Rehearsal{listener: listener{proxy: p}, change: p.newChange(c)}
	err := x.change.rehearse(dial)
	if err == nil {
		x.settings, err = x.change.makeSettings(l)
	}
	if err != nil {
		x.Disconnect()
		return nil, errors.Join(err, x.Close())
	}
	for _, g := range x.change.gates {
		g.settings.Store(x.settings)
	}
	x.listener.settings.Store(x.settings)
	return x, nil
}

// rehearse makes clusters that send only requests: no health checks, and no fetches of load
// reports. They learn no costs, and read no certificates.
func (n *Change) rehearse(dial upstream.DialFunc) error {
	for _, named := range n.config.Clusters {
		named.Health, named.LearnCosts, named.TLS = nil, nil, nil
		if l := named.Balance.LoadReports; l != nil {
			silent := *l
			silent.OutOfBandPeriod = 0
			named.Balance.LoadReports = &silent
		}
		if err := n.makeCluster(&named, dial); err != nil {
			return err
		}
		n.clusters[named.Name].replace(n.proxy.base, n.proxy.with.Logger, n.versions[named.Name])
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
	for _, c := range x.change.clusters {
		c.Close()
	}
}

// Close closes the gates. The observer has received all of their events when it returns.
func (x *Rehearsal) Close() (err error) {
	x.listener.proxy.cancel()
	for _, g := range x.change.gates {
		err = errors.Join(err, g.ingress.Close())
	}
	return err
}
