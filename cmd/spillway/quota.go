package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillredis/board"
	"github.com/seed90641741/spillway/spillrlqs"
)

// quotaCommand has the flags of "spillway quota".
type quotaCommand struct {
	Config   string `required:"" placeholder:"FILE" help:"The limits, and the servers of Redis or Valkey through which replicas share them."`
	Listen   string `default:"127.0.0.1:18081" placeholder:"HOST:PORT" help:"Address for Envoys (default ${default}). Use TLS for any other than loopback."`
	Cert     string `placeholder:"FILE" help:"Certificate of this server, as PEM. Without it there is no TLS."`
	Key      string `placeholder:"FILE" help:"Key of the certificate, as PEM."`
	ClientCA string `name:"client-ca" placeholder:"FILE" help:"CA certificates that verify Envoys, as PEM. With it, Envoys must have a certificate."`
	Log      string `placeholder:"FORMAT" enum:",text,json" default:"" help:"How to log: text or json (default text)."`
}

// Help is shown by "spillway quota --help".
func (*quotaCommand) Help() string {
	return "Holds the customers of a service to one quota over all of its Envoys: serves rate_limit_quota.v3, and ratelimit.v3 for " +
		"older filters. The file is YAML:\n\n" +
		"domain: shop\ntasks: 20 # Envoys, about\ninterval: 1s # at least the reporting_interval of the Envoys\n" +
		"customers: {mail: {rate: 1000}} # cost per second\ndefault_limit: {rate: 10} # each customer that is not listed\n" +
		"redis: {addresses: [\"127.0.0.1:6379\"]} # replicas share it"
}

// maxQuotaFile is how many bytes the file may have.
const maxQuotaFile = 16 << 20

// quotaFile is the file of "spillway quota".
type quotaFile struct {
	Domain         string                `yaml:"domain"`
	Tasks          int                   `yaml:"tasks"`
	Interval       time.Duration         `yaml:"interval"`
	BurstSeconds   float64               `yaml:"burst_seconds"`
	Capacity       float64               `yaml:"capacity"`
	Customers      map[string]quotaLimit `yaml:"customers"`
	DefaultLimit   quotaLimit            `yaml:"default_limit"`
	UnlistedTotal  quotaLimit            `yaml:"unlisted_total"`
	CustomerKey    string                `yaml:"customer_key"`
	CriticalityKey string                `yaml:"criticality_key"`
	Redis          *redisFile            `yaml:"redis"`
}

type quotaLimit struct {
	Rate   float64 `yaml:"rate"`
	Weight float64 `yaml:"weight"`
}

// redisFile says how to reach servers of Redis or Valkey.
type redisFile struct {
	Addresses    []string `yaml:"addresses"`
	Master       string   `yaml:"master"` // of Sentinel, which the addresses are then of
	Username     string   `yaml:"username"`
	PasswordFile string   `yaml:"password_file"`
	TLS          bool     `yaml:"tls"`
}

// Run serves until ctx ends.
func (c *quotaCommand) Run(ctx context.Context, w streams) error {
	text, err := os.ReadFile(c.Config)
	if err != nil {
		return usage{err}
	}
	var file quotaFile
	source := strict.Source{Name: c.Config, Text: text}
	if err := source.Decode(&file, maxQuotaFile); err != nil {
		return usage{err}
	}
	b, closeBoard, err := file.board()
	if err != nil {
		return usage{err}
	}
	defer closeBoard()
	s, err := spillrlqs.New(file.config(b))
	if err != nil {
		return usage{fmt.Errorf("%s: %w", c.Config, err)}
	}
	o, err := c.options()
	if err != nil {
		return usage{err}
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	_, logger := newLogging(w.stderr, c.Log)
	logger.Info("serving", "addr", listener.Addr().String(), "domain", file.Domain, "customers", len(file.Customers), "tls", c.Cert != "")
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	g := grpc.NewServer(o...)
	s.Register(g)
	stop := context.AfterFunc(ctx, g.Stop) // streams never end by themselves, and Envoys connect to another server
	defer stop()
	err = g.Serve(listener)
	done.Wait()
	st := s.Stats()
	logger.Info("ended", "reports", st.ReportsTotal, "assignments", st.AssignmentsTotal, "ok", st.OKTotal, "over_limit", st.OverLimitTotal)
	return err
}

// config returns the configuration of the server.
func (f *quotaFile) config(b fleet.Board) spillrlqs.Config {
	limits := quota.LocalConfig{
		Capacity: f.Capacity, DefaultLimit: f.DefaultLimit.limit(), UnlistedTotal: f.UnlistedTotal.limit(),
		Customers: make(map[string]quota.Limit, len(f.Customers)),
	}
	for name, l := range f.Customers {
		limits.Customers[name] = l.limit()
	}
	return spillrlqs.Config{
		Board: b, Domain: f.Domain, CustomerKey: f.CustomerKey, CriticalityKey: f.CriticalityKey,
		Fleet: fleet.Config{Limits: limits, Tasks: f.Tasks, Interval: f.Interval, BurstSeconds: f.BurstSeconds},
	}
}

func (l quotaLimit) limit() quota.Limit { return quota.Limit{Rate: l.Rate, Weight: l.Weight} }

// board returns the board that the file names, or nil, and what closes it.
func (f *quotaFile) board() (fleet.Board, func(), error) {
	if f.Redis == nil {
		return nil, func() {}, nil
	}
	o := redis.UniversalOptions{Addrs: f.Redis.Addresses, MasterName: f.Redis.Master, Username: f.Redis.Username, PoolSize: 16}
	if len(o.Addrs) == 0 {
		return nil, nil, &spillway.FieldError{Path: "redis.addresses", Value: o.Addrs, Allowed: "one or more"}
	}
	if f.Redis.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if f.Redis.PasswordFile != "" {
		password, err := os.ReadFile(f.Redis.PasswordFile)
		if err != nil {
			return nil, nil, err
		}
		o.Password = strings.TrimRight(string(password), "\r\n")
	}
	client := board.Connect(o)
	b, err := board.New(client, board.Config{Domain: f.Domain})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return b, func() { _ = client.Close() }, nil
}

// options returns what the gRPC server is made of.
func (c *quotaCommand) options() ([]grpc.ServerOption, error) {
	o := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(1000),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}), // finds Envoys that are gone
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(10 * time.Second),
	}
	if c.Cert == "" && c.Key == "" {
		if c.ClientCA != "" {
			return nil, errors.New("--client-ca needs --cert and --key")
		}
		return o, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if c.ClientCA != "" {
		pem, err := os.ReadFile(c.ClientCA)
		if err != nil {
			return nil, err
		}
		t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !t.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", c.ClientCA)
		}
	}
	return append(o, grpc.Creds(credentials.NewTLS(t))), nil
}
