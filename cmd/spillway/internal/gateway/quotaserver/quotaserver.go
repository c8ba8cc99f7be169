// Package quotaserver is "spillway quota": one quota per customer over all Envoys of a service, by
// rate_limit_quota.v3 and ratelimit.v3, and the health service of gRPC.
package quotaserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillrlqs"
)

// A Server serves quotas to Envoys. It is safe for concurrent use; make one with [Start], and end it
// with [Server.Close].
type Server struct {
	rlqs   *spillrlqs.Server
	engine *quotas.Engine // nil: this server is the only one
	board  *quotas.Watched
	grpc   *grpc.Server
	health *health.Server
	addr   net.Addr
	stop   context.CancelFunc
	done   sync.WaitGroup

	config atomic.Pointer[config.QuotaServer]
	tls    atomic.Pointer[tls.Config] // nil: in the clear
	failed atomic.Pointer[error]      // why the listener has ended
	ended  atomic.Bool
}

// Start serves a checked configuration at an address until the server is closed, or returns what keeps
// it from that.
func Start(c *config.QuotaServer, address string, logger *slog.Logger) (*Server, error) {
	s := &Server{health: health.NewServer()}
	s.config.Store(c)
	options, err := s.options(c)
	if err != nil {
		return nil, err
	}
	if err := s.open(c, logger); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, errors.Join(err, s.closeEngine())
	}
	s.addr, s.grpc = listener.Addr(), grpc.NewServer(options...)
	s.rlqs.Register(s.grpc)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.done.Go(func() { s.rlqs.Run(ctx) })
	s.done.Go(func() {
		if err := s.grpc.Serve(listener); err != nil {
			s.failed.Store(&err)
			logger.Error("the listener has failed", "error", err)
		}
	})
	return s, nil
}

// open makes the server and its board.
func (s *Server) open(c *config.QuotaServer, logger *slog.Logger) (err error) {
	var board fleet.Board = fleet.NewMemory(time.Now)
	if c.Redis != nil {
		if s.engine, err = quotas.Open(c.Engine()); err != nil {
			return err
		}
		if board, err = s.engine.Board(c.Domain); err != nil {
			return errors.Join(err, s.closeEngine())
		}
	}
	s.board = quotas.Logged(board, c.Domain, logger)
	if s.rlqs, err = spillrlqs.New(s.settings(c)); err != nil { // cannot be: the file was checked
		return errors.Join(err, s.closeEngine())
	}
	return nil
}

func (s *Server) settings(c *config.QuotaServer) spillrlqs.Config {
	return spillrlqs.Config{
		Board: s.board, Domain: c.Domain, CustomerKey: c.CustomerKey, CriticalityKey: c.CriticalityKey, Fleet: c.Fleet(),
	}
}

// options returns the options of the gRPC server. A new certificate counts for new connections.
func (s *Server) options(c *config.QuotaServer) ([]grpc.ServerOption, error) {
	o := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(1000),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}), // finds Envoys that are gone
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(10 * time.Second),
	}
	if err := s.secure(c); err != nil || c.TLS == nil {
		return o, err
	}
	return append(o, grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.Load(), nil },
	}))), nil
}

// secure reads the certificate.
func (s *Server) secure(c *config.QuotaServer) error {
	t, err := keys.Server(c.TLS, "h2")
	if err == nil && t != nil {
		s.tls.Store(t)
	}
	return err
}

// Update puts another checked configuration in place, or returns an error and changes nothing. Streams go
// on, and limits change within about three intervals. Fields that [config.QuotaServer.Restart] names keep their value.
func (s *Server) Update(c *config.QuotaServer) error {
	next, was := *c, s.config.Load()
	next.Domain, next.Redis = was.Domain, was.Redis
	if was.TLS == nil || next.TLS == nil {
		next.TLS = was.TLS
	}
	if err := s.secure(&next); err != nil {
		return err
	}
	if err := s.rlqs.Update(s.settings(&next)); err != nil {
		return err
	}
	s.config.Store(&next)
	return nil
}

// Addr returns the address for Envoys.
func (s *Server) Addr() net.Addr { return s.addr }

// Ready returns why Envoys cannot be served, nil if they can. Without its servers of Redis the
// server serves, too.
func (s *Server) Ready() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	if s.ended.Load() {
		return errors.New("draining")
	}
	return nil
}

// Levels returns the levels at the time now, for the page of operators.
func (s *Server) Levels(now time.Time) admin.Levels {
	c, st := s.config.Load(), s.rlqs.Stats(now)
	f := c.Fleet()
	return admin.Levels{
		Service: &quotastats.Service{
			Quota: c.Domain, Address: s.addr.String(), Envoys: st.Streams, Listed: st.Buckets, Unlisted: st.Unlisted,
			Reports: st.ReportsTotal, Overflow: st.OverflowTotal, Invalid: st.RejectedTotal, Calls: st.Calls,
		},
		Quotas:    []quotas.Stats{quotas.Of(now, c.Domain, &f, st.Fleet, s.rlqs, s.board)},
		Customers: customers.Of("Envoys", c.Domain, s.rlqs.Customers(now)),
	}
}

// Stats returns the counts since the start.
func (s *Server) Stats(now time.Time) spillrlqs.Stats { return s.rlqs.Stats(now) }

// Close ends all streams and leaves the quota to the other servers. Streams never end by themselves, and
// their Envoys connect to another server. It returns within about a second.
func (s *Server) Close() error {
	s.ended.Store(true)
	s.health.Shutdown()
	s.grpc.Stop()
	s.stop()
	s.done.Wait()
	return s.closeEngine()
}

func (s *Server) closeEngine() error {
	if s.engine == nil {
		return nil
	}
	return s.engine.Close()
}
