package httpproxy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
)

// next is a configuration that is ready to be applied: no remaining step can fail.
type next struct {
	config    *config.Config
	listeners map[string]*listener // those kept and new ones
	settings  map[string]*settings // of listeners
	clusters  map[string]*cluster
	upstreams map[string]*upstream.Version // of clusters; none where nothing has changed
	costs     map[string]upstream.Learned  // of clusters
	gates     map[gateKey]*gate
	plane     upstream.ControlPlane // nil: there is none
	made      []func()              // undo what was made
}

// prepare creates what a configuration needs and does not exist yet. On failure everything is
// undone.
func (p *Proxy) prepare(c *config.Config) (*next, error) {
	n := &next{
		config: c, listeners: make(map[string]*listener), settings: make(map[string]*settings),
		clusters: make(map[string]*cluster), upstreams: make(map[string]*upstream.Version), costs: make(map[string]upstream.Learned), gates: make(map[gateKey]*gate),
	}
	if err := p.make(n); err != nil {
		n.undo()
		return nil, err
	}
	return n, nil
}

// undo ends what was made.
func (n *next) undo() {
	for _, undo := range slices.Backward(n.made) {
		undo()
	}
}

func (p *Proxy) make(n *next) error {
	if err := p.makePlane(n); err != nil {
		return err
	}
	for i := range n.config.Clusters {
		if err := p.makeCluster(n, &n.config.Clusters[i]); err != nil {
			return wrap("cluster", n.config.Clusters[i].Name, err)
		}
	}
	for i := range n.config.Listeners {
		if err := p.makeListener(n, &n.config.Listeners[i]); err != nil {
			return wrap("listener", n.config.Listeners[i].Name, err)
		}
	}
	return nil
}

// makeCluster makes the client of a cluster, unless the cluster has not changed.
func (p *Proxy) makeCluster(n *next, x *config.Cluster) error {
	kept := p.clusters[x.Name]
	if kept == nil {
		kept = &cluster{Cluster: upstream.New(x.Name)}
	}
	n.clusters[x.Name] = kept
	var err error
	if n.costs[x.Name], err = kept.Learn(p.costs[x.Name], x.LearnCosts); err != nil {
		return err
	}
	secrets, err := keys.Client(x.TLS)
	if err != nil {
		return err
	}
	o := upstream.Options{Config: n.config, Cluster: x, Secrets: secrets, Observer: p.observer, Plane: n.plane}
	if u := kept.Current(); u != nil && u.Same(o) {
		return nil
	}
	u, err := upstream.Make(o)
	if err != nil {
		return err
	}
	n.upstreams[x.Name] = u
	n.made = append(n.made, u.Close)
	return nil
}

// makeSettings makes the settings of a listener without its certificates, and its gates.
func (p *Proxy) makeSettings(n *next, l *config.Listener) (*settings, error) {
	s := &settings{
		config: l, internal: l.Boundary == "internal", discloses: l.Discloses(), table: routes.New(n.config, l),
		bounds: clients.BoundsOf(l, &config.Route{}), peers: l.Networks(), keepsID: l.TrustsRequestID(),
	}
	for _, r := range s.table.All() {
		key := gateKey{l.Name, r.Config.Cluster}
		if n.gates[key] == nil {
			if err := p.makeGate(n, key, l); err != nil {
				return nil, err
			}
		}
		s.targets = append(s.targets, target{r, n.gates[key], clients.BoundsOf(l, r.Config), nil})
	}
	return s, nil
}

// makeListener opens a listener, unless it is open already.
func (p *Proxy) makeListener(n *next, l *config.Listener) error {
	s, err := p.makeSettings(n, l)
	if err != nil {
		return err
	}
	if s.tls, err = keys.Server(l.TLS, "h2", "http/1.1"); err != nil {
		return err
	}
	n.settings[l.Name] = s
	if kept := p.listeners[l.Name]; kept != nil && kept.settings.Load().alike(s) {
		n.listeners[l.Name] = kept
		return nil
	}
	fresh, err := p.listen(l)
	if err != nil {
		return err
	}
	n.listeners[l.Name] = fresh
	n.made = append(n.made, func() { _ = fresh.socket.Close() }) // nobody has used it
	return nil
}

// makeGate makes a gate, unless it exists.
func (p *Proxy) makeGate(n *next, key gateKey, l *config.Listener) error {
	c := p.ingress(n, key, l)
	c.Observer = p.observerOf(l)
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

func (p *Proxy) ingress(n *next, key gateKey, l *config.Listener) ingress.Config {
	for i := range n.config.Clusters {
		if x := &n.config.Clusters[i]; x.Name == key.cluster {
			c := n.config.Ingress(l, x)
			p.quotas.Share(&c.Quota, n.config, x.Name, x.Quota)
			n.costs[x.Name].To(&c)
			return c
		}
	}
	return ingress.Config{} // cannot be: routes were checked
}

// commit applies a configuration.
func (p *Proxy) commit(n *next) {
	for _, name := range slices.Sorted(maps.Keys(n.settings)) {
		n.settings[name].count(p.book)
	}
	for name, u := range n.upstreams {
		n.clusters[name].replace(p.base, p.logger, u)
	}
	for key, g := range n.gates {
		if p.gates[key] != nil {
			c := p.ingress(n, key, n.settings[key.listener].config)
			c.Observer = p.observerOf(n.settings[key.listener].config)
			p.impossible(g.ingress.Update(c)) // it was tried
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
			p.serve(l)
		}
	}
	p.end(n)
	p.config, p.listeners, p.clusters, p.costs, p.gates, p.plane = n.config, n.listeners, n.clusters, n.costs, n.gates, n.plane
	p.tune()
}

// impossible logs an error that cannot occur.
func (p *Proxy) impossible(err error) {
	if err != nil {
		p.logger.Error("a part of the configuration was not changed", "error", err)
	}
}

// end closes what the new configuration does not use, after in-flight requests have ended.
// Gates and clusters close after the listeners, whose last requests still use them. The former
// control plane closes last and receives the final report of their rejections.
func (p *Proxy) end(n *next) {
	var former sync.WaitGroup
	for name, l := range p.listeners {
		if n.listeners[name] != l {
			p.former.Add(1)
			former.Go(func() {
				defer p.former.Done()
				p.endListener(l, n.config.DrainTimeout)
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

func (p *Proxy) endListener(l *listener, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(p.base, timeout)
	defer cancel()
	if err := l.drain(ctx); err != nil {
		p.logger.Warn("requests of a former listener were cut off", "error", err)
	}
}

// retire closes a gate when the last request in it has ended.
func (p *Proxy) retire(g *gate) {
	p.running.Go(func() {
		<-g.users.Retire()
		if err := g.ingress.Close(); err != nil {
			p.logger.Warn("closing a gate", "error", err)
		}
	})
}
