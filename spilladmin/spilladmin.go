package spilladmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/access"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Config configures a [Page]. The zero Config is ready for use: the page is for clients on the same host.
type Config struct {
	// Name is the name of this process on the page. Empty means the name of the host.
	Name string
	// Version is the version of the program, for display. Empty means the version of its main module.
	Version string
	// Next, if not nil, also receives all events: an observer of package spillprom, spillotel or spillslog.
	Next spillway.Observer
	// Caller returns who sent the request of a context, for the list of the callers that are rejected most. It is called
	// for rejections, on the path of the request: it must be quick and safe for concurrent use. Nil, or an empty
	// name, means that callers are not known.
	Caller func(context.Context) string
	// Token is the bearer token that each request must have, also from this host. It must have at least 16 characters, or
	// be empty: then only clients on the same host are served, over loopback or a Unix socket, and not what a server
	// on it has forwarded.
	Token string
	// Hosts are the allowed host names in requests, in addition to localhost and IP addresses. Other
	// names are rejected, as they may be of an attacker whose DNS points to this server.
	Hosts []string
	// Logger receives a line when a condition of the page begins, such as an overload, and another when it ends. Nil
	// means no lines.
	Logger *slog.Logger
}

// A Page shows operators the servers and clients of this process. It is an [http.Handler] and an [ingress.EndObserver]. It is
// safe for concurrent use; make one with [New] and close it with [Page.Close].
type Page struct {
	collector *collector.Collector
	decisions *decisions.Log
	next      spillway.Observer   // nil: none
	ends      ingress.EndObserver // next, if it is one
	sources   sources
	admin     *admin.Server
	handler   http.Handler
}

var (
	_ ingress.EndObserver = (*Page)(nil)
	_ http.Handler        = (*Page)(nil)
)

// New returns a Page, or an error that names the field of c that is wrong. It starts a goroutine that reads the levels
// once per second, until [Page.Close].
func New(c Config) (*Page, error) {
	token := access.Text(c.Token)
	if token != nil {
		if _, err := token(); err != nil {
			return nil, fmt.Errorf("spilladmin: Token %w", err)
		}
	}
	p := &Page{collector: collector.NewLibrary(), decisions: decisions.NewLibrary(nil, c.Caller), next: c.Next}
	p.ends, _ = c.Next.(ingress.EndObserver)
	p.admin = admin.New(p.config(c, token))
	p.handler = p.admin.Handler()
	return p, nil
}

// config returns the configuration of the server of the page.
func (p *Page) config(c Config, token access.Token) admin.Config {
	return admin.Config{
		Name: c.Name, Version: cmp.Or(c.Version, version()), Logger: c.Logger,
		Library: true, Collector: p.collector, Decisions: p.decisions, Source: &p.sources,
		Access: access.Rules{
			Hosts: c.Hosts, Read: token, Direct: true,
			Words: access.Words{
				Hosts:  "Config.Hosts of package spilladmin",
				NoRead: "this page is for clients on the same host: for others set Config.Token of package spilladmin",
			},
		},
	}
}

// version returns the version of the main module.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// Observe implements [spillway.Observer]. It allocates nothing, but for some samples of rejections per second.
func (p *Page) Observe(e spillway.Event) {
	if e.Policy != telemetry.PolicyHedge { // which is no decision on a request
		p.collector.Observe(e)
		p.decisions.Observe(e)
	}
	if p.next != nil {
		p.next.Observe(e)
	}
}

// ObserveEnd implements [ingress.EndObserver].
func (p *Page) ObserveEnd(e spillway.Event) {
	p.collector.ObserveEnd(e)
	if p.ends != nil {
		p.ends.ObserveEnd(e)
	}
}

// ServeHTTP implements [http.Handler]. The package comment lists the paths. Under another path mount the Page with
// [http.StripPrefix].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// A Server has the levels of the server side. [ingress.Server] is one.
type Server interface {
	Stats(now time.Time) ingress.Stats
}

// A Client has the levels of the client side, by backend. The Transport of package spillhttp and the Client of package
// spillgrpc are Clients.
type Client interface {
	Stats(now time.Time) map[string]egress.Stats
}

// A Budget has the level of a retry budget. [budget.Bucket] is one.
type Budget interface {
	Stats(now time.Time) budget.Stats
}

// A Quota has the state of a quota that many tasks share. [fleet.Fleet] is one.
type Quota interface {
	Stats(now time.Time) fleet.Stats
}

// AddServer shows s from now on, in place of a server with the same name. The Page must be the Observer of s, or receive its
// events and ends from it.
func (p *Page) AddServer(name string, s Server) {
	p.collector.Serves()
	put(&p.sources, &p.sources.servers, name, s)
}

// AddClient shows the backends of c from now on: the most throttled first, then the ones with most calls in flight.
// The Page must be the Observer of c.
func (p *Page) AddClient(c Client) { p.sources.addClient(c) }

// AddBudget shows b from now on, with the backend of that name. It replaces a budget with the same name.
func (p *Page) AddBudget(backend string, b Budget) { put(&p.sources, &p.sources.budgets, backend, b) }

// AddQuota shows q from now on, in place of a quota with the same name.
func (p *Page) AddQuota(name string, q Quota) { put(&p.sources, &p.sources.quotas, name, q) }

// Close ends the goroutine of the Page and its streams. Events are still counted. Close must be called once.
func (p *Page) Close() error {
	if err := p.admin.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("spilladmin: %w", err)
	}
	return nil
}
