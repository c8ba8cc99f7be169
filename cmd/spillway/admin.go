package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/collector"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/levels"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/lines"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/otel"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// defaultAdmin is the default address for operators.
const defaultAdmin = "127.0.0.1:8001"

// operators gives operators a view of a proxy and applies their changes. It implements
// [admin.Proxy].
type operators struct {
	logger   *slog.Logger
	proxy    *gateway.Proxy
	follower *follower
	server   *admin.Server // serves nobody without an address, and still logs incidents
	address  string        // of it, as it was asked for
	exporter *otel.Exporter

	collector *collector.Collector

	asks     chan func()   // that the follower is to do
	draining chan struct{} // closed when the follower does nothing any more
	config   atomic.Pointer[config.Config]
	settings atomic.Pointer[settings]
	override atomic.Pointer[admin.Override]
	events   events
	tls      atomic.Pointer[tls.Config] // nil: in the clear
}

// operate opens the address for operators, from the flag or the configuration. If the
// default address is not available, the proxy runs without it.
func operate(flag string, f *follower, collector *collector.Collector, decided *decisions.Log) (*operators, error) {
	o := &operators{
		logger: f.logger, proxy: f.proxy, follower: f, collector: collector,
		asks: make(chan func()), draining: make(chan struct{}),
	}
	o.events.use(f.now)
	o.use(f.now)
	socket, err := o.listen(flag)
	if err != nil {
		return o, err
	}
	o.server = admin.New(admin.Config{Collector: collector, Decisions: decided, Proxy: o, Access: o.access(), Version: version(), Logger: f.logger, Wall: f.wall})
	if socket != nil {
		o.serve(socket)
	}
	if o.exporter, err = otel.Start(f.now.Otel, version(), o.server.Metrics(), f.logger); err != nil {
		o.close()
	}
	return o, err
}

// listen opens the address from the flag or the configuration. It returns nil if the
// address is off, or if the default address is not available.
func (o *operators) listen(flag string) (socket net.Listener, err error) {
	address := cmp.Or(flag, o.follower.now.Admin.Address)
	if address == "off" {
		return socket, nil
	}
	o.address = cmp.Or(address, defaultAdmin)
	if err := o.secure(o.follower.now); err != nil {
		return nil, fmt.Errorf("the address for operators: %w", err)
	}
	socket, err = o.open()
	switch {
	case err != nil && address != "":
		return nil, fmt.Errorf("the address for operators: %w", err)
	case err != nil:
		o.logger.Warn("there is no page for operators; --admin says where one can be", "error", err)
	}
	return socket, nil
}

// open opens the address: TCP, or a Unix socket that the same group can access.
func (o *operators) open() (net.Listener, error) {
	path, unix := strings.CutPrefix(o.address, "unix:")
	if !unix {
		socket, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.address)
		if err != nil || o.follower.now.Admin.TLS == nil {
			return socket, err
		}
		return tls.NewListener(socket, &tls.Config{
			MinVersion:         tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.tls.Load(), nil },
		}), nil
	}
	if left, err := os.Stat(path); err == nil && left.Mode()&os.ModeSocket != 0 {
		if c, err := new(net.Dialer).DialContext(context.Background(), "unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s is in use", path)
		}
		_ = os.Remove(path) // of a process that was killed
	}
	socket, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	return socket, err
}

// secure reads the certificate of the address, if it has one.
func (o *operators) secure(c *config.Config) error {
	t, err := keys.Server(c.Admin.TLS, "h2", "http/1.1")
	if err == nil && t != nil {
		o.tls.Store(t)
	}
	return err
}

// serve serves operators until the server is closed.
func (o *operators) serve(socket net.Listener) {
	go func() {
		if err := o.server.Serve(socket); err != nil {
			o.logger.Error("the address for operators has failed", "error", err)
		}
	}()
	scheme := "http://"
	switch {
	case socket.Addr().Network() == "unix":
		scheme = "unix:"
	case o.tls.Load() != nil:
		scheme = "https://"
	}
	o.logger.Info("for operators", "dashboard", scheme+socket.Addr().String()+"/")
}

// access returns the configured access rules. A host name in the address is an allowed host.
func (o *operators) access() config.Admin {
	a := o.config.Load().Admin
	if host, _, err := net.SplitHostPort(o.address); err == nil {
		a.Hosts = append(slices.Clone(a.Hosts), host)
	}
	return a
}

// took is called after a reload with the new configuration. It discards changes that were
// made over the API.
func (o *operators) took(c *config.Config) {
	if was := o.override.Swap(nil); was != nil {
		o.logger.Warn("a change over the API is dropped", "field", was.Field, "was", was.Value, "is", string(c.Defaulted().Mode))
	}
	if o.config.Load().Admin.Address != c.Admin.Address {
		o.logger.Warn("admin.address counts from the next start on")
	}
	if err := o.secure(c); err != nil {
		o.logger.Warn("reload of the certificate for operators failed; keeping the previous one", "error", err)
	}
	if !reflect.DeepEqual(o.config.Load().Otel, c.Otel) {
		o.logger.Warn("otel counts from the next start on")
	}
	o.use(c)
	o.events.use(c)
	if o.server != nil {
		o.server.Allow(o.access())
	}
}

// use sets the configuration that is in use. MongoDB commands pass the gates once per
// attempt, so they are collected by their end.
func (o *operators) use(c *config.Config) {
	o.config.Store(c)
	var keys []string
	for _, m := range c.Defaulted().Mongo {
		keys = append(keys, m.Name)
	}
	o.collector.ByEnd(slices.DeleteFunc(keys, func(key string) bool {
		return slices.ContainsFunc(c.Clusters, func(x config.Cluster) bool { return x.Name == key })
	})...)
}

// drain makes the proxy not ready, and rejects changes from now on.
func (o *operators) drain() { close(o.draining) }

func (o *operators) close() {
	if o.server == nil {
		return
	}
	if err := o.server.Close(); err != nil {
		o.logger.Warn("closing the address for operators", "error", err)
	}
	o.exporter.Close() // last, so that it sends the last figures
}

// Levels implements [admin.Proxy].
func (o *operators) Levels(now time.Time) admin.Levels {
	l, access := levels.Of(o.proxy, o.config.Load().Defaulted(), now)
	l.Override, l.Draining = o.override.Load(), errors.Is(o.Ready(), errEnds)
	l.Notices, l.Changes = o.events.read(now)
	if headline, text, wrong := o.follower.control.Status(now).Notice(); wrong {
		l.Notices = append(l.Notices, admin.Notice{Kind: telemetry.NoticeControlPlane, Headline: headline, Text: text})
	}
	for _, log := range []struct {
		name, words string
		lines.Stats
	}{{"program", "log", o.follower.log.lines.Stats()}, {"access", "access log", access}} {
		l.Logs = append(l.Logs, admin.Log{Name: log.name, Lost: log.LostTotal})
		if n, lost := lostNotice(log.words, log.Stats); lost {
			l.Notices = append(l.Notices, n)
		}
	}
	return l
}

// errEnds is returned for changes while the proxy drains.
var errEnds = errors.New("draining")

// do makes a change in the goroutine of the follower, which makes all changes.
func (o *operators) do(change func(*follower) error) error {
	done := make(chan error, 1)
	select {
	case o.asks <- func() { done <- change(o.follower) }:
		return <-done
	case <-o.draining:
		return errEnds
	}
}

// SetMode implements [admin.Proxy].
func (o *operators) SetMode(mode spillway.Mode) (kept []string, err error) {
	err = o.do(func(f *follower) error {
		var wanted *config.Config
		wanted, kept = f.now.WithMode(mode)
		file := f.now.Defaulted().Mode
		if err := f.proxy.Update(wanted); err != nil {
			return err
		}
		o.config.Store(wanted)
		o.events.note(false, "mode "+mode.String())
		changes := config.Diff(f.now.Defaulted(), wanted.Defaulted())
		if len(changes) == 0 {
			o.override.Store(nil)
			return nil
		}
		o.override.Store(&admin.Override{Field: "mode", Value: mode.String(), File: string(file), Since: time.Now()})
		f.logger.Warn("the mode differs from the configuration until that is next read", "mode", mode.String(), "changes", strings.Join(changes, "; "))
		return nil
	})
	return kept, err
}

// Reload implements [admin.Proxy].
func (o *operators) Reload() error {
	return o.do(func(f *follower) error {
		if f.file == "" { // what the command line says
			err := f.proxy.Update(f.now)
			if err == nil {
				o.took(f.now)
			}
			return err
		}
		r := readingOf(f.file)
		if _, err := r.usable(); err != nil {
			return err
		}
		before := f.now
		if f.read("the API"); f.now == before {
			return errors.New("reload failed; keeping the previous configuration; the log has the reason")
		}
		return nil
	})
}

// Ready implements [admin.Proxy].
func (o *operators) Ready() error {
	select {
	case <-o.draining:
		return errEnds
	default:
	}
	if !o.proxy.Serving() {
		return errors.New("nothing listens")
	}
	return nil
}

// settings are the fields of a configuration.
type settings struct {
	of  *config.Config
	all []admin.Setting
}

// Settings implements [admin.Proxy]. It is called each second while requests are rejected, so it
// reads the fields of each configuration once.
func (o *operators) Settings() []admin.Setting {
	c := o.config.Load()
	if s := o.settings.Load(); s != nil && s.of == c {
		return s.all
	}
	s := &settings{c, settingsOf(c)}
	o.settings.Store(s)
	return s.all
}

func settingsOf(c *config.Config) (all []admin.Setting) {
	given := make(map[string]bool)
	for _, line := range config.Given("", *c) {
		field, _, _ := strings.Cut(line, ": ")
		given[field] = true
	}
	for _, line := range config.Given("", *c.Defaulted()) {
		field, value, _ := strings.Cut(line, ": ")
		all = append(all, admin.Setting{Field: field, Value: value, Given: given[field]})
	}
	return all
}
