package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/collector"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/otel"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/xds"
	"github.com/seed90641741/spillway/cmd/spillway/internal/ready"
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
	// From here on a SIGHUP, or a change of the file, is not missed.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	wanted, seen, err := c.wanted()
	if err != nil {
		return usage{err}
	}
	if err := otel.Check(wanted.Otel); err != nil {
		return err
	}
	log, logger := newLogging(w.stderr, c.Log)
	defer log.close()
	log.set(wanted)
	collector, decided, control := collector.New(), decisions.New(logger), new(xds.Connector)
	tracer, err := otel.StartTraces(wanted.Defaulted().Otel, version(), logger)
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
	s := supervisor{
		file: c.File, proxy: p, logger: logger, log: log, control: control, collector: collector,
		now: wanted, seen: seen, asks: make(chan func()), draining: make(chan struct{}),
	}
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

// A reading is the text of a file at one time, or the error of reading it.
type reading struct {
	file string
	text []byte
	err  error
}

func readingOf(file string) (r reading) {
	r.file = file
	r.text, r.err = os.ReadFile(file)
	return r
}

func (r *reading) config() (*config.Config, error) {
	if r.err != nil {
		return nil, r.err
	}
	return config.Parse(r.file, r.text)
}

// fingerprint changes when the text changes, or a file that c names. An unreadable file has a
// fingerprint, too.
func (r *reading) fingerprint(c *config.Config) [sha256.Size]byte {
	h := sha256.New()
	add := func(name string, text []byte, err error) {
		fmt.Fprintf(h, "%q %d %v\n", name, len(text), err != nil)
		h.Write(text)
	}
	add(r.file, r.text, r.err)
	for _, name := range c.Files() {
		text, err := os.ReadFile(name)
		add(name, text, err)
	}
	return [sha256.Size]byte(h.Sum(nil))
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
		if all, err = r.config(); err == nil {
			seen = r.fingerprint(all)
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
	message := ready.Message{Listeners: make(map[string]string)}
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

// watchEvery is the interval at which files are checked for changes.
const watchEvery = time.Second

// A supervisor reloads the configuration of a proxy when its file changes, gives operators a view of the
// proxy, and applies their changes. It implements [admin.Proxy].
type supervisor struct {
	file      string // none: there is nothing to follow
	proxy     *gateway.Proxy
	logger    *slog.Logger
	log       *logging
	control   *xds.Connector
	collector *collector.Collector

	// Only the goroutine of follow uses these.
	now  *config.Config
	seen [sha256.Size]byte // of the files

	server   *admin.Server // serves nobody without an address, and still logs incidents
	address  string        // of it, as it was asked for
	exporter *otel.Exporter
	asks     chan func()   // that follow is to do
	draining chan struct{} // closed when follow has ended: not ready, and no changes from then on

	config   atomic.Pointer[config.Config]   // with changes over the API
	settings atomic.Pointer[[]admin.Setting] // of config
	override atomic.Pointer[admin.Override]
	events   events
	tls      atomic.Pointer[tls.Config] // nil: in the clear
}

// follow looks for changes until ctx ends.
func (s *supervisor) follow(ctx context.Context, hangups <-chan os.Signal) {
	looks := time.NewTicker(watchEvery)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_ = s.read("SIGHUP") // it has logged an error
		case ask := <-s.asks:
			ask()
		case <-looks.C:
			if s.changed() {
				_ = s.read("a file has changed") // as above
			}
		}
	}
}

func (s *supervisor) changed() bool {
	if s.file == "" {
		return false
	}
	r := readingOf(s.file)
	return r.fingerprint(s.now) != s.seen
}

// read reloads the file; why is the reason, for the log, which has an error, too.
func (s *supervisor) read(why string) error {
	if s.file == "" {
		s.logger.Info("there is no file to read again")
		return nil
	}
	// The fingerprint is of the text that is used, and of the other files before they are
	// read: a change in between is detected as a change.
	r := readingOf(s.file)
	s.seen = r.fingerprint(s.now)
	err := s.load(&r)
	s.events.reloaded(plainly(err))
	if err != nil {
		s.logger.Error("reload failed; keeping the previous configuration", "because", why, "error", plainly(err))
		return err
	}
	s.logger.Info("the configuration was read", "because", why)
	return nil
}

// load puts what was read in place, if this program supports it.
func (s *supervisor) load(r *reading) error {
	wanted, err := r.config()
	if err == nil {
		err = otel.Check(wanted.Otel)
	}
	if err != nil {
		return err
	}
	seen := r.fingerprint(wanted)
	if err := s.put(wanted); err != nil {
		return err
	}
	s.seen = seen
	return nil
}
