package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotaserver"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// quotaCommand has the commands of "spillway quota".
type quotaCommand struct {
	Serve   quotaServe   `cmd:"" default:"withargs" help:"Serve quotas (the default)."`
	Check   quotaCheck   `cmd:"" help:"Check a file of quotas."`
	Explain quotaExplain `cmd:"" help:"Show what a customer may use, and why."`
	Schema  printed      `cmd:"" help:"Print the JSON schema of files of quotas."`
}

func (*quotaCommand) Help() string {
	return "Serves one quota per customer to all Envoys of a service: by rate_limit_quota.v3, and by ratelimit.v3 for " +
		"older filters. The file has the limits, and the servers of Redis or Valkey through which replicas share them. It is reloaded when it changes or " +
		"on SIGHUP, and streams go on:\n\n" +
		"    domain: shop\n    tasks: 20 # Envoys, about\n    interval: 1s # at least the reporting_interval of the Envoys\n" +
		"    customers: {mail: {rate: 1000}} # cost per second\n    default_limit: {rate: 10} # each customer that is not listed\n" +
		"    redis: {addresses: [\"127.0.0.1:6379\"]} # replicas share it"
}

// quotaServe has the flags of "spillway quota".
type quotaServe struct {
	configFile
	Listen   string `default:"127.0.0.1:18081" placeholder:"HOST:PORT" help:"Address for Envoys (default ${default}). Use TLS for addresses that are not loopback."`
	Cert     string `placeholder:"FILE" help:"Certificate of this server, as PEM, in place of tls in the file. Without either there is no TLS."`
	Key      string `placeholder:"FILE" help:"Key of the certificate, as PEM."`
	ClientCA string `name:"client-ca" placeholder:"FILE" help:"CA certificates that verify Envoys, as PEM. With it, Envoys must have a certificate."`
	Admin    string `placeholder:"HOST:PORT" help:"Address for operators (page, metrics, health), or off; overrides the file (default 127.0.0.1:18082)."`
	Log      string `placeholder:"FORMAT" enum:",text,json" default:"" help:"Log format: text or json (default text)."`
}

// defaultQuotaAdmin is the default address for operators of a service of quotas.
const defaultQuotaAdmin = "127.0.0.1:18082"

func (c *quotaServe) Run(ctx context.Context, w streams) error {
	if err := c.usable(); err != nil {
		return usage{err}
	}
	follower, hangups := newFollower(c.File, nil)
	defer signal.Stop(hangups)
	r := readingOf(c.File)
	file, err := c.parse(&r)
	if err != nil {
		return usage{err}
	}
	follower.files, follower.seen = file.Files(), r.fingerprint(file.Files())
	log, logger := newLogging(w.stderr, c.Log)
	defer log.close()
	follower.logger = logger
	server, err := quotaserver.Start(file, c.Listen, logger)
	if err != nil {
		return err
	}
	s := quotaSupervisor{follower: follower, server: server, flags: c, log: log}
	follower.parse = s.load
	s.use(file)
	if err := s.start(c.Admin, defaultQuotaAdmin, file.Admin, &admin.Config{Source: &s, Program: &s, Logger: logger}); err != nil {
		return errors.Join(err, server.Close())
	}
	defer s.operators.close()
	logger.Info("serving", "addr", server.Addr().String(), "domain", file.Domain, "customers", len(file.Customers), "tls", file.TLS != nil)
	s.follow(ctx, hangups)
	close(s.draining)
	err = server.Close()
	s.logEnd(logger)
	return err
}

// usable returns what is wrong with the flags.
func (c *quotaServe) usable() error {
	if err := c.named(); err != nil {
		return err
	}
	if err := hostPort("listen", c.Listen); err != nil {
		return err
	}
	if c.Admin != "" && c.Admin != "off" && !strings.HasPrefix(c.Admin, "unix:") {
		if err := hostPort("admin", c.Admin); err != nil {
			return err
		}
	}
	if c.ClientCA != "" && (c.Cert == "" || c.Key == "") {
		return errors.New("--client-ca needs --cert and --key")
	}
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("--cert and --key go together")
	}
	return nil
}

// parse returns the configuration that was read, with the certificate from the flags.
func (c *quotaServe) parse(r *reading) (*config.QuotaServer, error) {
	file, err := parsed(r, config.ParseQuotaServer)
	if err != nil || c.Cert == "" {
		return file, err
	}
	if file.TLS != nil {
		return nil, fmt.Errorf("--cert goes without tls in the file, and %s has tls", r.file)
	}
	file.TLS = &config.ServerTLS{Certificate: c.Cert, Key: c.Key, ClientCA: c.ClientCA}
	return file, nil
}

// A quotaSupervisor reloads the file of a service of quotas, and gives operators a view of it. It implements
// [admin.Source] and [admin.Program].
type quotaSupervisor struct {
	*follower
	operators

	server   *quotaserver.Server
	flags    *quotaServe
	log      *logging
	now      *config.QuotaServer // only the goroutine of follow uses it
	settings atomic.Pointer[[]settings.Setting]
}

// load returns a func that puts what was read in place.
func (s *quotaSupervisor) load(r *reading) (files []string, put func() error, err error) {
	wanted, err := s.flags.parse(r)
	if err != nil {
		return nil, nil, err
	}
	return wanted.Files(), func() error { return s.put(wanted) }, nil
}

func (s *quotaSupervisor) put(c *config.QuotaServer) error {
	if err := s.server.Update(c); err != nil {
		return err
	}
	for _, field := range s.now.Restart(c) {
		s.follower.logger.Warn(field + " counts from the next start on")
	}
	for _, line := range config.DiffQuotaServers(s.now, c) {
		s.follower.logger.Info("configuration changed", "field", line)
	}
	s.operators.update(c.Admin)
	s.use(c)
	return nil
}

func (s *quotaSupervisor) use(c *config.QuotaServer) {
	s.now = c
	s.settings.Store(new(gateway.Settings(*c, *c.Defaulted())))
	s.events.use(secured{"for Envoys", c.TLS})
}

// Levels implements [admin.Source].
func (s *quotaSupervisor) Levels(now time.Time) admin.Levels {
	l := s.server.Levels(now)
	l.Mode, l.Draining = spillway.ModeEnforce, s.ended() != nil
	l.Notices, l.Changes = s.events.read(now)
	addLog(&l, "program", "log", s.log.lines.Stats())
	return l
}

// Ready implements [admin.Source].
func (s *quotaSupervisor) Ready() error { return cmp.Or(s.ended(), s.server.Ready()) }

// Settings implements [admin.Program].
func (s *quotaSupervisor) Settings() []settings.Setting { return *s.settings.Load() }

// SetMode implements [admin.Program].
func (*quotaSupervisor) SetMode(spillway.Mode) ([]string, error) {
	return nil, errors.New("a service of quotas has no mode: the filter of the Envoys rejects requests")
}

// Reload implements [admin.Program].
func (s *quotaSupervisor) Reload() error {
	return s.do(func() error { return s.read("the API") })
}

func (s *quotaSupervisor) logEnd(logger *slog.Logger) {
	st := s.server.Stats(time.Now())
	logger.Info("ended", "reports", st.ReportsTotal, "assignments", st.AssignmentsTotal, "ok", st.OKTotal, "over_limit", st.OverLimitTotal)
}
