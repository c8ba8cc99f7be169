package spillrlqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// A Server serves quotas to Envoys. It is safe for concurrent use and must not be copied;
// make one with [New], run [Server.Run], and [Server.Register] it on a gRPC server.
type Server struct {
	cfg   atomic.Pointer[Config] // with its defaults
	board fleet.Board
	fleet *fleet.Fleet // this server as a task: requests of the older protocol
	gate  *quota.Quota

	mu      sync.Mutex
	started uint64 // streams, since the server was made
	streams map[*stream]struct{}
	stats   Stats
}

// Stats say how a Server stands. Counts are since it was made.
type Stats struct {
	Streams          int    // that are open
	Buckets          int    // of listed customers, in all streams
	Unlisted         int    // buckets of all other customers
	ReportsTotal     uint64 // usage reports of single buckets
	OverflowTotal    uint64 // of these, reports of buckets beyond the limits
	AssignmentsTotal uint64 // sent
	RejectedTotal    uint64 // streams and requests that were rejected
	OverLimitTotal   uint64 // answers OVER_LIMIT of the older protocol
	OKTotal          uint64 // its other answers
	// Calls are the calls by class, as Envoys report them and as the older protocol asks for them. Index it
	// with [spillway.Criticality.Index].
	Calls [spillway.Criticalities]quota.ClassStats
	// Fleet is of this server as a task. Its Leader says whether this server or one of its streams leads.
	Fleet fleet.Stats
}

// New returns a Server, or an error that names the field of c that is out of range.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	f, err := fleet.New(c.Fleet)
	if err != nil {
		return nil, inFleet(err)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	gate, err := quota.New(c.gate(f))
	if err != nil {
		return nil, inFleet(err)
	}
	s := &Server{board: c.Board, fleet: f, gate: gate, streams: make(map[*stream]struct{})}
	if s.board == nil {
		s.board = fleet.NewMemory(time.Now)
	}
	s.cfg.Store(&c)
	return s, nil
}

// gate returns the configuration of the gate of the older protocol.
func (c *Config) gate(f *fleet.Fleet) quota.Config {
	return quota.Config{Allocator: f, BurstSeconds: c.Fleet.BurstSeconds, MaxUnlisted: c.Fleet.MaxUnlisted}
}

// Update changes the configuration of a Server in use, or returns an error that names the field
// that is out of range and changes nothing. Streams go on. Board and Fleet.Task have no effect, and other keys
// count for new buckets. Limits must come to all servers soon.
func (s *Server) Update(c Config) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	if err := s.fleet.Update(c.Fleet); err != nil {
		return inFleet(err)
	}
	if err := s.gate.Update(c.gate(s.fleet)); err != nil { // cannot be: the fleet has checked the same fields
		return inFleet(err)
	}
	s.cfg.Store(&c)
	for _, t := range s.open() {
		if err := t.fleet.Update(c.Fleet); err != nil { // cannot be: it was accepted above
			return inFleet(err)
		}
	}
	return nil
}

// open returns the streams.
func (s *Server) open() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.streams))
}

// inFleet returns an error of a field of Config.Fleet.
func inFleet(err error) error {
	if e, ok := errors.AsType[*spillway.FieldError](err); ok {
		outer := *e
		outer.Path = "Fleet." + e.Path
		return fmt.Errorf("spillrlqs: %w", &outer)
	}
	return fmt.Errorf("spillrlqs: %w", err)
}

// Register registers both services.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	rlqs.RegisterRateLimitQuotaServiceServer(r, quotaService{s: s})
	ratelimit.RegisterRateLimitServiceServer(r, limitService{s: s})
}

// Run syncs this server's own part with the board until ctx ends, and says goodbye to it then.
// Call it once, before requests arrive. Streams sync on their own.
func (s *Server) Run(ctx context.Context) { fleet.Run(ctx, s.fleet, s.board) }

// Stats returns how the Server stands.
func (s *Server) Stats(now time.Time) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.stats
	all.Fleet = s.fleet.Stats(now)
	for t := range s.streams {
		all.Fleet.Leader = all.Fleet.Leader || t.fleet.Stats(now).Leader
	}
	return all
}

// Level returns the level of a customer over all servers, or false if the last levels have none: it uses
// less than half of its limit.
func (s *Server) Level(customer string) (fleet.Level, bool) { return s.fleet.Level(customer) }

// begin makes a stream, or returns an error if there are too many.
func (s *Server) begin() (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.Streams >= s.cfg.Load().MaxStreams {
		s.stats.RejectedTotal++
		return nil, status.Errorf(codes.ResourceExhausted, "%d streams are open, the limit", s.stats.Streams)
	}
	s.started++
	f, err := s.fleet.Join(s.started)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	s.stats.Streams++
	t := newStream(s, f)
	s.streams[t] = struct{}{}
	return t, nil
}

// take takes a place for a bucket, and returns false if all are taken.
func (s *Server) take(listed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.places(listed)
	if *n >= s.cfg.Load().MaxBuckets {
		return false
	}
	*n++
	return true
}

// give gives back places of buckets.
func (s *Server) give(listed bool, buckets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.places(listed) -= buckets
}

func (s *Server) places(listed bool) *int {
	if listed {
		return &s.stats.Buckets
	}
	return &s.stats.Unlisted
}

// count changes the counters.
func (s *Server) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// domain rejects a request for another domain.
func (s *Server) domain(name string) error {
	served := s.cfg.Load().Domain
	if served == "" || name == served {
		return nil
	}
	return s.reject("domain %.64q is not served here, only %q", name, served)
}

// reject counts an invalid message of a client, and returns an error for it.
func (s *Server) reject(format string, args ...any) error {
	s.count(func(st *Stats) { st.RejectedTotal++ })
	return status.Errorf(codes.InvalidArgument, format, args...)
}
