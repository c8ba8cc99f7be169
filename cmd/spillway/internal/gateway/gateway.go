// Package gateway is "spillway proxy": one configuration, and in front of the services that it
// names a proxy for HTTP and gRPC (package httpproxy) and one for MongoDB (package
// mongoproxy). Both change together, report to the same observer, and share the limits of the
// process: open files, and memory for clients. [Levels] shows operators what their policies measure.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/httpproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// Config is what a proxy reports to, and by what it connects. It makes its Quotas itself.
type Config = httpproxy.Config

// A Proxy is a running proxy. It is safe for concurrent use; create one with [Start].
type Proxy struct {
	logger    *slog.Logger
	decisions *decisions.Log
	cancel    context.CancelFunc
	quotas    *quotas.Set
	http      *httpproxy.Proxy
	mongo     *mongoproxy.Proxy

	mu     sync.Mutex // one change at a time
	config *config.Config
}

// Start starts a proxy with a configuration as a file has it, which is not changed, or returns an error of
// the configuration or its resources. The proxy runs until [Proxy.Drain] or [Proxy.Close] is called. When
// ctx ends, all requests are canceled, but the proxy runs on.
func Start(ctx context.Context, wanted *config.Config, c Config) (*Proxy, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Decisions = cmp.Or(c.Decisions, decisions.New(c.Logger))
	c.Observer, c.Quotas = c.Decisions.Before(c.Observer), quotas.New(c.Logger)
	p := &Proxy{logger: c.Logger, decisions: c.Decisions, quotas: c.Quotas, config: &config.Config{}}
	ctx, p.cancel = context.WithCancel(ctx)
	p.http = httpproxy.New(ctx, c)
	p.mongo = mongoproxy.New(ctx, mongoproxy.Config{
		Logger: c.Logger, Observer: c.Observer, Accounts: c.Accounts, Decisions: c.Decisions, Quotas: c.Quotas,
	})
	if err := p.Update(wanted); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// Update applies another configuration as a whole, or returns an error and changes nothing.
// Files that the configuration names, such as certificates, are read again. Changes are
// logged.
func (p *Proxy) Update(c *config.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := c.Check(); err != nil {
		return err
	}
	c = c.Defaulted()
	resources.LogCaps(p.logger, resources.FitOpenFiles(c, resources.OpenFiles()))
	q, err := p.quotas.Prepare(context.Background(), c)
	if err != nil {
		return err
	}
	m, err := p.mongo.Prepare(c)
	if err != nil {
		return abandon(err, q)
	}
	h, err := p.http.Prepare(c)
	if err != nil {
		return abandon(err, m, q)
	}
	if err := p.log(c.Log.Access); err != nil {
		return abandon(err, h, m, q)
	}
	if err := p.decisions.SetRate(c.Log.Rejections); err != nil { // as Check has found it good
		return abandon(err, h, m, q)
	}
	resources.Memory.SetLimit(c.MaxBuffered)
	m.Commit()
	h.Commit()
	q.Commit()
	p.tell(c)
	p.config = c
	return nil
}

// abandon discards prepared changes, and returns the reason.
func abandon(why error, changes ...interface{ Abandon() }) error {
	for _, x := range changes {
		x.Abandon()
	}
	return why
}

// log opens another access log, if it has changed.
func (p *Proxy) log(c *config.Access) error {
	if reflect.DeepEqual(p.config.Log.Access, c) {
		return nil
	}
	l, err := logs.OpenAccessLog(c)
	if err == nil {
		p.http.SetAccessLog(l).Close()
	}
	return err
}

func (p *Proxy) tell(c *config.Config) {
	if len(p.config.Listeners)+len(p.config.Mongo) == 0 {
		return // started
	}
	for _, line := range config.Diff(p.config, c) {
		p.logger.Info("configuration changed", "field", line)
	}
}

// Addr returns the address of the named listener, or nil if it does not exist. The name ""
// selects the first listener.
func (p *Proxy) Addr(name string) net.Addr {
	if a := p.http.Addr(name); a != nil {
		return a
	}
	return p.mongo.Addr(name)
}

// Serving reports whether there is a listener that accepts connections.
func (p *Proxy) Serving() bool { return p.http.Serving() || p.mongo.Serving() }

// Drain shuts the proxy down: it stops accepting connections, waits for in-flight requests
// until ctx is done or the drain timeout expires, and closes the rest. It returns an error if
// a request was cut off.
func (p *Proxy) Drain(ctx context.Context) error {
	p.mu.Lock()
	timeout := p.config.DrainTimeout
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = p.mongo.Drain(ctx) })
	both.Go(func() { errs[1] = p.http.Drain(ctx) })
	both.Go(p.quotas.Leave)
	both.Wait()
	p.cancel()
	p.http.SetAccessLog(nil).Close()
	return errors.Join(errs[:]...)
}

// Close shuts the proxy down at once and cuts off in-flight requests.
func (p *Proxy) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Drain(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Stats is a snapshot of a [Proxy].
type Stats struct {
	httpproxy.Stats

	Mongo  []mongoproxy.Stats // of listeners for clients of MongoDB
	Quotas []quotas.Stats     // that are shared with other proxies
}

// Stats returns the levels of all policies at the time now.
func (p *Proxy) Stats(now time.Time) Stats {
	return Stats{p.http.Stats(now), p.mongo.Stats(now), p.quotas.Stats(now)}
}

// wrap adds the part of the configuration that an error was found in.
func wrap(part, name string, err error) error { return fmt.Errorf("%s %s: %w", part, name, err) }
