package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillrlqs"
)

// quotaCommand has the flags of "spillway quota".
type quotaCommand struct {
	configFile
	Listen   string `default:"127.0.0.1:18081" placeholder:"HOST:PORT" help:"Address for Envoys (default ${default}). Use TLS for addresses that are not loopback."`
	Cert     string `placeholder:"FILE" help:"Certificate of this server, as PEM. Without it there is no TLS."`
	Key      string `placeholder:"FILE" help:"Key of the certificate, as PEM."`
	ClientCA string `name:"client-ca" placeholder:"FILE" help:"CA certificates that verify Envoys, as PEM. With it, Envoys must have a certificate."`
	Log      string `placeholder:"FORMAT" enum:",text,json" default:"" help:"Log format: text or json (default text)."`
}

func (*quotaCommand) Help() string {
	return "Serves one quota per customer to all Envoys of a service: by rate_limit_quota.v3, and by ratelimit.v3 for " +
		"older filters. The file has the limits, and the servers of Redis or Valkey through which replicas share them:\n\n" +
		"    domain: shop\n    tasks: 20 # Envoys, about\n    interval: 1s # at least the reporting_interval of the Envoys\n" +
		"    customers: {mail: {rate: 1000}} # cost per second\n    default_limit: {rate: 10} # each customer that is not listed\n" +
		"    redis: {addresses: [\"127.0.0.1:6379\"]} # replicas share it"
}

// maxQuotaFile is the largest size of the file in bytes.
const maxQuotaFile = 16 << 20

// quotaFile is the file of "spillway quota".
type quotaFile struct {
	policyconf.Engine `yaml:",inline"`

	BurstSeconds   float64                     `yaml:"burst_seconds"`
	Capacity       float64                     `yaml:"capacity"`
	Customers      map[string]policyconf.Limit `yaml:"customers"`
	DefaultLimit   policyconf.Limit            `yaml:"default_limit"`
	UnlistedTotal  policyconf.Limit            `yaml:"unlisted_total"`
	CustomerKey    string                      `yaml:"customer_key"`
	CriticalityKey string                      `yaml:"criticality_key"`
}

func (c *quotaCommand) Run(ctx context.Context, w streams) error {
	if err := c.named(); err != nil {
		return err
	}
	file, source, err := c.read()
	if err != nil {
		return usage{err}
	}
	log, logger := newLogging(w.stderr, c.Log)
	defer log.close()
	o, err := c.options()
	if err != nil {
		return usage{err}
	}
	b, closeBoard, err := file.board(logger)
	if err != nil {
		return usage{err}
	}
	defer closeBoard()
	s, err := file.server(b)
	if err != nil {
		return usage{located(source, err)}
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	logger.Info("serving", "addr", listener.Addr().String(), "domain", file.Domain, "customers", len(file.Customers), "tls", c.Cert != "")
	err = serveQuota(ctx, s, grpc.NewServer(o...), listener)
	st := s.Stats()
	logger.Info("ended", "reports", st.ReportsTotal, "assignments", st.AssignmentsTotal, "ok", st.OKTotal, "over_limit", st.OverLimitTotal)
	return err
}

// read returns the content of the file, and its text for messages.
func (c *quotaCommand) read() (file quotaFile, source strict.Source, err error) {
	if err := hostPort("listen", c.Listen); err != nil {
		return file, source, err
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return file, source, err
	}
	source = strict.Source{Name: c.File, Text: text}
	err = source.Decode(&file, maxQuotaFile)
	return file, source, err
}

func serveQuota(ctx context.Context, s *spillrlqs.Server, g *grpc.Server, listener net.Listener) error {
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	s.Register(g)
	stop := context.AfterFunc(ctx, g.Stop) // streams never end by themselves, and Envoys connect to another server
	defer stop()
	err := g.Serve(listener)
	done.Wait()
	return err
}

func (f *quotaFile) server(b fleet.Board) (*spillrlqs.Server, error) {
	wanted, err := f.config(b)
	if err != nil {
		return nil, err
	}
	s, err := spillrlqs.New(wanted)
	if err == nil && f.limitsNone() {
		err = errors.New("limits no customer: set customers, default_limit or unlisted_total")
	}
	return s, err
}

// limitsNone reports whether all customers of all Envoys could do as they like, as with an empty file.
func (f *quotaFile) limitsNone() bool {
	return len(f.Customers) == 0 && f.DefaultLimit.Rate == 0 && f.UnlistedTotal.Rate == 0 && f.Capacity == 0
}

// config returns the configuration of the server, or an error that names a setting that it does
// not have.
func (f *quotaFile) config(b fleet.Board) (c spillrlqs.Config, err error) {
	q := policyconf.Quota{
		BurstSeconds: f.BurstSeconds, Capacity: f.Capacity, Customers: f.Customers, DefaultLimit: f.DefaultLimit, UnlistedTotal: f.UnlistedTotal,
	}
	if name := q.OfOneProcess(); name != "" {
		return c, fmt.Errorf("%s is given, but quotas for Envoys have none", name)
	}
	return spillrlqs.Config{
		Board: b, Domain: f.Domain, CustomerKey: f.CustomerKey, CriticalityKey: f.CriticalityKey, Fleet: f.Fleet(&q),
	}, nil
}

// located returns an error of a field of the server's configuration as one of the file.
func located(s strict.Source, err error) error {
	e, ok := errors.AsType[*spillway.FieldError](err)
	if !ok {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	field := strings.TrimPrefix(strings.TrimPrefix(strict.Path(e.Path), "fleet."), "limits.")
	return strict.Errors{s.At(field, e.Problem())}
}

// board returns the configured board, or nil, and a func that closes it.
func (f *quotaFile) board(logger *slog.Logger) (fleet.Board, func(), error) {
	if f.Redis == nil {
		return nil, func() {}, nil
	}
	engine, err := quotas.Open(&f.Engine)
	if err != nil {
		return nil, nil, err
	}
	b, err := engine.Board(f.Domain)
	if err != nil {
		return nil, nil, errors.Join(err, engine.Close())
	}
	return quotas.Logged(b, f.Domain, logger), func() { _ = engine.Close() }, nil // nothing depends on it
}

func (c *quotaCommand) options() ([]grpc.ServerOption, error) {
	o := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(1000),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}), // finds Envoys that are gone
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(10 * time.Second),
	}
	switch {
	case c.Cert != "" || c.Key != "":
		t, err := keys.Server(&config.ServerTLS{Certificate: c.Cert, Key: c.Key, ClientCA: c.ClientCA})
		if err != nil {
			return nil, err
		}
		o = append(o, grpc.Creds(credentials.NewTLS(t)))
	case c.ClientCA != "":
		return nil, errors.New("--client-ca needs --cert and --key")
	}
	return o, nil
}
