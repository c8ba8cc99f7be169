package httpproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"sync"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
)

// A Change is a configuration that is ready to be applied: no remaining step can fail. Exactly one
// of its methods must be called, soon: until then no other change can be prepared.
type Change struct {
	proxy *Proxy
	state
	settings map[string]*settings         // of listeners
	versions map[string]*upstream.Version // of clusters: the one in use, if nothing has changed
	made     []func()                     // undo what was made
}

// errClosed is returned for a change of a proxy that has ended.
var errClosed = errors.New("proxy: closed")

// newChange returns a change to a configuration, for which nothing was made.
func (p *Proxy) newChange(c *config.Config) *Change {
	return &Change{proxy: p, state: newState(c), settings: make(map[string]*settings), versions: make(map[string]*upstream.Version)}
}

// Prepare creates everything that a configuration needs. The configuration must have been
// checked and have its defaults. Files that it names, such as certificates, are read again. If
// Prepare fails, nothing has changed.
func (p *Proxy) Prepare(c *config.Config) (*Change, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	n := p.newChange(c)
	if err := n.make(); err != nil {
		n.Abandon()
		return nil, err
	}
	return n, nil
}

// Abandon discards the change.
func (n *Change) Abandon() {
	defer n.proxy.mu.Unlock()
	for _, undo := range slices.Backward(n.made) {
		undo()
	}
}

func (n *Change) make() error {
	if err := n.makePlane(); err != nil {
		return err
	}
	for i := range n.config.Clusters {
		if err := n.makeCluster(&n.config.Clusters[i], nil); err != nil {
			return fmt.Errorf("cluster %s: %w", n.config.Clusters[i].Name, err)
		}
	}
	for i := range n.config.Listeners {
		if err := n.makeListener(&n.config.Listeners[i]); err != nil {
			return fmt.Errorf("listener %s: %w", n.config.Listeners[i].Name, err)
		}
	}
	return nil
}

// makeCluster makes the client of a cluster, unless the cluster has not changed. With nil it dials over the network.
func (n *Change) makeCluster(x *config.Cluster, dial upstream.DialFunc) error {
	p := n.proxy
	kept := p.clusters[x.Name]
	if kept == nil {
		kept = &cluster{Cluster: upstream.New(x.Name)}
	}
	secrets, err := keys.Client(x.TLS)
	if err != nil {
		return err
	}
	u, err := kept.Make(upstream.Options{
		Config: n.config, Cluster: x, Secrets: secrets, Observer: p.observerOf(nil), Plane: n.plane, Dial: dial,
	})
	if err != nil {
		return err
	}
	n.clusters[x.Name], n.versions[x.Name] = kept, u
	if u != kept.Current() {
		n.made = append(n.made, u.Close)
	}
	return nil
}

// makeSettings makes the settings of a listener without its certificates, and its gates.
func (n *Change) makeSettings(l *config.Listener) (*settings, error) {
	s := &settings{
		config: l, internal: l.Boundary == "internal", discloses: l.Discloses(), table: routes.New(n.config, l),
		bounds: clients.BoundsOf(l, &config.Route{}), peers: l.Networks(), keepsID: l.TrustsRequestID(),
	}
	for _, r := range s.table.All() {
		key := gateKey{l.Name, r.Config.Cluster}
		if n.gates[key] == nil {
			if err := n.makeGate(key, l); err != nil {
				return nil, err
			}
		}
		s.targets = append(s.targets, target{r, n.gates[key], clients.BoundsOf(l, r.Config), nil})
	}
	return s, nil
}

// makeListener opens a listener, unless it is open already.
func (n *Change) makeListener(l *config.Listener) error {
	s, err := n.makeSettings(l)
	if err != nil {
		return err
	}
	if s.tls, err = keys.Server(l.TLS, "h2", "http/1.1"); err != nil {
		return err
	}
	n.settings[l.Name] = s
	if kept := n.proxy.listeners[l.Name]; kept != nil && kept.settings.Load().alike(s) {
		n.listeners[l.Name] = kept
		return nil
	}
	socket, err := n.proxy.listen(l)
	if err != nil {
		return err
	}
	n.listeners[l.Name] = &listener{proxy: n.proxy, socket: socket.(*net.TCPListener)}
	n.made = append(n.made, func() { _ = socket.Close() }) // nobody has used it
	return nil
}

// makeGate makes a gate, unless it exists.
func (n *Change) makeGate(key gateKey, l *config.Listener) error {
	p, u := n.proxy, n.versions[key.cluster]
	c := n.config.Ingress(l, u.Config)
	p.with.Quotas.Share(&c.Quota, n.config, key.cluster, u.Config.Quota)
	u.Charge(&c)
	c.Observer = p.observerOf(l)
	n.policies[key] = c
	if kept := p.gates[key]; kept != nil {
		n.gates[key] = kept
		// A trial, so that the Update of what is in use cannot fail.
		trial, err := ingress.New(c)
		if err != nil {
			return err
		}
		return trial.Close()
	}
	g, err := p.newGate(key, n.clusters[key.cluster], c)
	if err != nil {
		return err
	}
	n.gates[key] = g
	n.made = append(n.made, func() { _ = g.ingress.Close() }) // nobody has used it
	return nil
}

// Commit applies the configuration.
func (n *Change) Commit() {
	p := n.proxy
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(n.settings)) {
		n.settings[name].count(p.with.Accounts)
	}
	for name, x := range n.clusters {
		if u := n.versions[name]; u != x.Current() {
			x.replace(p.base, p.with.Logger, u)
		}
	}
	for key, g := range n.gates {
		if p.gates[key] != nil {
			p.impossible(g.ingress.Update(n.policies[key])) // it was tried
		}
		g.settings.Store(n.settings[key.listener])
	}
	for name, l := range n.listeners {
		l.settings.Store(n.settings[name])
		if p.listeners[name] == l {
			p.impossible(l.accept.Update(l.connections(n.settings[name].config))) // it was checked
			l.clients.Limit(n.settings[name].config.MaxRequests)
			l.clients.SetCosts(n.settings[name].config.HandshakeCost, n.settings[name].config.IdleCost)
		} else {
			l.serve()
		}
	}
	p.end(&n.state)
	p.state = n.state
	p.tune()
}

// impossible logs an error that cannot occur.
func (p *Proxy) impossible(err error) {
	if err != nil {
		p.with.Logger.Error("a part of the configuration was not changed", "error", err)
	}
}

// end closes what the new configuration does not use, after in-flight requests have ended.
// Gates and clusters close after the listeners, whose last requests still use them. The former
// control plane closes last and receives the final report of their rejections.
func (p *Proxy) end(n *state) {
	var former sync.WaitGroup
	for name, l := range p.listeners {
		if n.listeners[name] != l {
			p.former.Enter() // always true: after Drain there are no changes
			former.Go(func() {
				defer p.former.Leave()
				ctx, cancel := context.WithTimeout(p.base, n.config.DrainTimeout)
				defer cancel()
				if err := l.drain(ctx); err != nil {
					p.with.Logger.Warn("requests of a former listener were cut off", "error", err)
				}
			})
		}
	}
	gates, clusters, plane := p.gates, p.clusters, p.plane
	p.running.Go(func() {
		former.Wait()
		for key, g := range gates {
			if n.gates[key] == nil {
				p.retire(g)
			}
		}
		for name, x := range clusters {
			if n.clusters[name] == nil {
				x.Close()
			}
		}
		if plane != n.plane {
			p.leave(plane)
		}
	})
}

// retire closes a gate when the last request in it has ended.
func (p *Proxy) retire(g *gate) {
	p.running.Go(func() {
		<-g.users.Retire()
		if err := g.ingress.Close(); err != nil {
			p.with.Logger.Warn("closing a gate", "error", err)
		}
	})
}

// errNoPlane is returned if a configuration names a control plane and [Config].Connect is nil.
var errNoPlane = errors.New("xds: there is no way to connect to a control plane")

// makePlane connects to the control plane, unless it is connected already.
func (n *Change) makePlane() (err error) {
	p, x := n.proxy, n.config.XDS
	switch {
	case x == nil:
		return nil
	case p.plane != nil && reflect.DeepEqual(p.config.XDS, x):
		n.plane = p.plane
		return nil
	case p.with.Connect == nil:
		return errNoPlane
	}
	if n.plane, err = p.with.Connect(x, p.with.Logger); err == nil {
		n.made = append(n.made, func() { p.leave(n.plane) })
	}
	return err
}

// leave ends a control plane, if there is one.
func (p *Proxy) leave(plane upstream.ControlPlane) {
	if plane == nil {
		return
	}
	if err := plane.Close(); err != nil {
		p.with.Logger.Warn("leaving the control plane", "error", err)
	}
}
