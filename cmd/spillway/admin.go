package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin"
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

// operate opens the address for operators, from the flag or the configuration. If the
// default address is not available, the proxy runs without it.
func (s *supervisor) operate(flag string, decided *decisions.Log, wall func(time.Time) time.Time) error {
	s.use(s.now)
	socket, err := s.listen(flag)
	if err != nil {
		return err
	}
	s.server = admin.New(admin.Config{
		Collector: s.collector, Decisions: decided, Proxy: s, Access: s.access(), Version: version(), Logger: s.logger, Wall: wall,
	})
	if socket != nil {
		s.serve(socket)
	}
	if s.exporter, err = otel.Start(s.now.Otel, version(), s.server.Metrics(), s.logger); err != nil {
		s.close()
	}
	return err
}

// listen opens the address from the flag or the configuration. It returns nil if the
// address is off, or if the default address is not available.
func (s *supervisor) listen(flag string) (socket net.Listener, err error) {
	address := cmp.Or(flag, s.now.Admin.Address)
	if address == "off" {
		return socket, nil
	}
	s.address = cmp.Or(address, defaultAdmin)
	if err := s.secure(s.now); err != nil {
		return nil, fmt.Errorf("the address for operators: %w", err)
	}
	socket, err = s.open()
	switch {
	case err != nil && address != "":
		return nil, fmt.Errorf("the address for operators: %w", err)
	case err != nil:
		s.logger.Warn("there is no page for operators; --admin says where one can be", "error", err)
	}
	return socket, nil
}

// open opens the address: TCP, or a Unix socket that the same group can access.
func (s *supervisor) open() (net.Listener, error) {
	path, unix := strings.CutPrefix(s.address, "unix:")
	if !unix {
		socket, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.address)
		if err != nil || s.now.Admin.TLS == nil {
			return socket, err
		}
		return tls.NewListener(socket, &tls.Config{
			MinVersion:         tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.Load(), nil },
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
func (s *supervisor) secure(c *config.Config) error {
	t, err := keys.Server(c.Admin.TLS, "h2", "http/1.1")
	if err == nil && t != nil {
		s.tls.Store(t)
	}
	return err
}

func (s *supervisor) serve(socket net.Listener) {
	go func() {
		if err := s.server.Serve(socket); err != nil {
			s.logger.Error("the address for operators has failed", "error", err)
		}
	}()
	scheme := "http://"
	switch {
	case socket.Addr().Network() == "unix":
		scheme = "unix:"
	case s.tls.Load() != nil:
		scheme = "https://"
	}
	s.logger.Info("for operators", "dashboard", scheme+socket.Addr().String()+"/")
}

// access returns the configured access rules. A host name in the address is an allowed host.
func (s *supervisor) access() config.Admin {
	a := s.config.Load().Admin
	if host, _, err := net.SplitHostPort(s.address); err == nil {
		a.Hosts = append(slices.Clone(a.Hosts), host)
	}
	return a
}

// put puts a configuration in place. It discards changes that were made over the API.
func (s *supervisor) put(c *config.Config) error {
	if err := s.proxy.Update(c); err != nil {
		return err
	}
	s.now = c
	s.log.set(c)
	if was := s.override.Swap(nil); was != nil {
		s.logger.Warn("a change over the API is dropped", "field", was.Field, "was", was.Value, "is", string(c.Defaulted().Mode))
	}
	if s.config.Load().Admin.Address != c.Admin.Address {
		s.logger.Warn("admin.address counts from the next start on")
	}
	if (s.config.Load().Admin.TLS == nil) != (c.Admin.TLS == nil) {
		s.logger.Warn("admin.tls counts from the next start on")
	}
	if err := s.secure(c); err != nil {
		s.logger.Warn("reload of the certificate for operators failed; keeping the previous one", "error", err)
	}
	if !reflect.DeepEqual(s.config.Load().Otel, c.Otel) {
		s.logger.Warn("otel counts from the next start on")
	}
	s.use(c)
	s.server.Allow(s.access())
	return nil
}

// use sets the configuration that is in use. MongoDB commands pass the gates once per
// attempt, so they are collected by their end.
func (s *supervisor) use(c *config.Config) {
	s.config.Store(c)
	s.settings.Store(new(settingsOf(c)))
	s.events.use(c)
	var byEnd []string
	for _, m := range c.Defaulted().Mongo {
		byEnd = append(byEnd, m.Name)
	}
	s.collector.ByEnd(byEnd...)
}

func (s *supervisor) close() {
	if err := s.server.Close(); err != nil {
		s.logger.Warn("closing the address for operators", "error", err)
	}
	s.exporter.Close() // last, so that it sends the last figures
}

// Levels implements [admin.Proxy].
func (s *supervisor) Levels(now time.Time) admin.Levels {
	l, access := levels.Of(s.proxy, s.config.Load().Defaulted(), now)
	l.Override, l.Draining = s.override.Load(), errors.Is(s.Ready(), errEnds)
	l.Notices, l.Changes = s.events.read(now)
	if headline, text, wrong := s.control.Status(now).Notice(); wrong {
		l.Notices = append(l.Notices, admin.Notice{Kind: telemetry.NoticeControlPlane, Headline: headline, Text: text})
	}
	for _, log := range []struct {
		name, words string
		lines.Stats
	}{{"program", "log", s.log.lines.Stats()}, {"access", "access log", access}} {
		l.Logs = append(l.Logs, admin.Log{Name: log.name, Lost: log.LostTotal})
		if n, lost := lostNotice(log.words, log.Stats); lost {
			l.Notices = append(l.Notices, n)
		}
	}
	return l
}

// errEnds is returned for changes while the proxy drains.
var errEnds = errors.New("draining")

// do makes a change in the goroutine of follow, which makes all changes.
func (s *supervisor) do(change func() error) error {
	done := make(chan error, 1)
	select {
	case s.asks <- func() { done <- change() }:
		return <-done
	case <-s.draining:
		return errEnds
	}
}

// SetMode implements [admin.Proxy].
func (s *supervisor) SetMode(mode spillway.Mode) (kept []string, err error) {
	err = s.do(func() error {
		var wanted *config.Config
		wanted, kept = s.now.WithMode(mode)
		file := s.now.Defaulted().Mode
		if err := s.proxy.Update(wanted); err != nil {
			return err
		}
		s.use(wanted)
		s.events.note(false, "mode "+mode.String())
		changes := config.Diff(s.now.Defaulted(), wanted.Defaulted())
		if len(changes) == 0 {
			s.override.Store(nil)
			return nil
		}
		s.override.Store(&admin.Override{Field: "mode", Value: mode.String(), File: string(file), Since: time.Now()})
		s.logger.Warn("the mode differs from the configuration until that is next read", "mode", mode.String(), "changes", strings.Join(changes, "; "))
		return nil
	})
	return kept, err
}

// Reload implements [admin.Proxy].
func (s *supervisor) Reload() error {
	return s.do(func() error {
		if s.file == "" { // what the command line says
			return s.put(s.now)
		}
		return s.read("the API")
	})
}

// Ready implements [admin.Proxy].
func (s *supervisor) Ready() error {
	select {
	case <-s.draining:
		return errEnds
	default:
	}
	if !s.proxy.Serving() {
		return errors.New("nothing listens")
	}
	return nil
}

// Settings implements [admin.Proxy].
func (s *supervisor) Settings() []admin.Setting { return *s.settings.Load() }

func settingsOf(c *config.Config) (all []admin.Setting) {
	given := maps.Collect(config.Values("", *c))
	for field, value := range config.Values("", *c.Defaulted()) {
		_, ok := given[field]
		all = append(all, admin.Setting{Field: field, Value: value, Given: ok})
	}
	return all
}
