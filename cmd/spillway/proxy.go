package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/xds"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// proxyCommand has the flags of "spillway proxy".
type proxyCommand struct {
	configFile
	Upstream string      `placeholder:"HOST:PORT" help:"Upstream address, in place of a configuration file; all other settings have their defaults."`
	Listen   string      `placeholder:"HOST:PORT" help:"Address for clients, with --upstream (default 127.0.0.1:8000)."`
	Mode     config.Mode `placeholder:"MODE" help:"Mode of all gates, with --upstream: off, observe or enforce (default observe)."`
	Batch    bool        `help:"With --upstream: at most 16 requests in flight; others wait, in any mode."`
	Admin    string      `placeholder:"HOST:PORT" help:"Address for operators (dashboard, metrics, health), or off; overrides the file (default 127.0.0.1:8001)."`
	ReadyFD  int         `name:"ready-fd" placeholder:"N" help:"When listeners accept connections, write their addresses to file descriptor N, as one line of JSON, and close it."`
	Log      string      `placeholder:"FORMAT" enum:",text,json" default:"" help:"Log format: text or json; overrides the file (default text)."`

	wall func(time.Time) time.Time // the time of day; nil: that of the host
}

// defaultListen is the default address for clients.
const defaultListen = "127.0.0.1:8000"

func (proxyCommand) Help() string {
	return "Proxies HTTP/1.1, HTTP/2 and gRPC, in front of or beside a service in any language. The configuration is reloaded when it changes or " +
		"on SIGHUP. With --upstream the default is observe mode: gates decide and report, and every request passes. --mode enforce rejects. " +
		"\"spillway schema\" describes the file, and \"spillway check\" validates one.\n\n" +
		"SIGTERM and SIGINT drain: no new connections are accepted, and in-flight requests end. A second signal ends everything at once."
}

func (c *proxyCommand) Run(ctx context.Context, w streams) error {
	follower, hangups := newFollower(cmp.Or(c.File, c.Config), nil)
	defer signal.Stop(hangups)
	wanted, seen, err := c.wanted()
	if err != nil {
		return usage{err}
	}
	follower.files, follower.seen = wanted.Files(), seen
	if err := exporters.Check(wanted.Otel); err != nil {
		return err
	}
	log, logger := newLogging(w.stderr, c.Log)
	defer log.close()
	log.set(wanted)
	follower.logger = logger
	collector, decided, control := collector.New(), decisions.New(logger), new(xds.Connector)
	tracer, err := exporters.StartTraces(wanted.Defaulted().Otel, version(), logger)
	if err != nil {
		return err
	}
	defer tracer.Close()
	p, err := gateway.Start(context.WithoutCancel(ctx), wanted, gateway.Config{
		Logger: logger, Observer: collector, Accounts: collector.Accounts(), Decisions: decided, Tracer: tracer, Connect: control.Connect,
	})
	if err != nil {
		return err
	}
	if err := c.hello(logger, p, wanted); err != nil {
		return errors.Join(err, p.Close())
	}
	s := supervisor{follower: follower, proxy: p, log: log, control: control, collector: collector, now: wanted}
	s.parse = s.load
	if err = s.operate(c.Admin, decided, c.wall); err != nil {
		return errors.Join(err, p.Close())
	}
	defer s.close()
	s.follow(ctx, hangups)
	logger.Info("draining")
	close(s.draining)
	if err := p.Drain(context.WithoutCancel(ctx)); err != nil {
		logger.Warn("some requests were cut off", "error", err)
	}
	logger.Info("ended")
	return nil
}

// wanted returns the configuration from the flags or the file, and the fingerprint of the
// file.
func (c *proxyCommand) wanted() (all *config.Config, seen [sha256.Size]byte, err error) {
	c.File = cmp.Or(c.File, c.Config)
	if c.Admin != "" && c.Admin != "off" && !strings.HasPrefix(c.Admin, "unix:") {
		if err := hostPort("admin", c.Admin); err != nil {
			return nil, seen, err
		}
	}
	switch {
	case c.File == "" && c.Upstream == "":
		return nil, seen, errors.New("nothing to do: name a FILE, or give --upstream=HOST:PORT")
	case c.File != "" && c.Upstream != "":
		return nil, seen, fmt.Errorf("--upstream goes without a configuration, and %s is given", c.File)
	case c.File != "":
		for flag, given := range map[string]bool{"--listen": c.Listen != "", "--mode": c.Mode != "", "--batch": c.Batch} {
			if given {
				return nil, seen, fmt.Errorf("%s goes with --upstream; here the file says so", flag)
			}
		}
		r := readingOf(c.File)
		if all, err = parsed(&r, config.Parse); err == nil {
			seen = r.fingerprint(all.Files())
		}
		return all, seen, err
	}
	all = config.ForUpstream(cmp.Or(c.Listen, defaultListen), c.Upstream)
	all.Mode = c.Mode
	if c.Batch {
		all.Clusters[0].Batch = new(config.Batch)
	}
	return all, seen, flagged(all.Check())
}

// flagged returns an error of a configuration that was made from flags, with the flag
// instead of the field that it has set.
func flagged(err error) error {
	wrong, ok := errors.AsType[*config.Error](err)
	if !ok {
		return err
	}
	flags := map[string]string{"clusters[0].endpoints[0]": "--upstream", "listeners[0].address": "--listen", "mode": "--mode"}
	named := *wrong
	named.Field = cmp.Or(flags[wrong.Field], wrong.Field)
	return &named
}

// hello reports that the proxy accepts connections: in the log, and to the process that
// started it.
func (c *proxyCommand) hello(logger *slog.Logger, p *gateway.Proxy, wanted *config.Config) error {
	mode := wanted.Defaulted().Mode
	message := process.Ready{Listeners: make(map[string]string)}
	listening := func(name, protocol string) {
		message.Listeners[name] = p.Addr(name).String()
		logger.Info("listening", "listener", name, "address", message.Listeners[name], "for", protocol, "mode", string(mode))
	}
	for _, l := range wanted.Defaulted().Listeners {
		listening(l.Name, "http")
	}
	for _, m := range wanted.Defaulted().Mongo {
		listening(m.Name, "mongodb")
	}
	if mode == "observe" && c.File == "" {
		rejects := "nothing is rejected"
		if c.Batch {
			rejects = "nothing is rejected except by the queue"
		}
		logger.Info(rejects + " in mode observe; --mode enforce protects the upstream")
	}
	if c.ReadyFD > 0 {
		return message.Send(c.ReadyFD)
	}
	return nil
}

// A supervisor reloads the configuration of a proxy when its file changes, gives operators a view of the
// proxy, and applies their changes. It implements [admin.Source] and [admin.Program].
type supervisor struct {
	*follower
	operators

	proxy     *gateway.Proxy
	log       *logging
	control   *xds.Connector
	collector *collector.Collector
	now       *config.Config // only the goroutine of follow uses it
	exporter  *exporters.Exporter

	config   atomic.Pointer[config.Config]      // with changes over the API
	settings atomic.Pointer[[]settings.Setting] // of config
	override atomic.Pointer[admin.Override]
}

// load returns a func that puts what was read in place, if this program supports it.
func (s *supervisor) load(r *reading) (files []string, put func() error, err error) {
	wanted, err := parsed(r, config.Parse)
	if err == nil {
		err = exporters.Check(wanted.Otel)
	}
	if err != nil {
		return nil, nil, err
	}
	return wanted.Files(), func() error { return s.put(wanted) }, nil
}
