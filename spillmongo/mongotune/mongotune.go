package mongotune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Limit is one of the two limiters.
type Limit uint8

// The limiters.
const (
	Requests    Limit = iota // requests per second
	Connections              // new connections per second
)

// names are the names of a limiter's parameters.
type names struct{ enabled, rate, burst string }

var parameters = [...]names{
	Requests: {
		"ingressRequestRateLimiterEnabled",
		"ingressRequestAdmissionRatePerSec",
		"ingressRequestAdmissionBurstCapacitySecs",
	},
	Connections: {
		"ingressConnectionEstablishmentRateLimiterEnabled",
		"ingressConnectionEstablishmentRatePerSec",
		"ingressConnectionEstablishmentBurstCapacitySecs",
	},
}

// counts says where serverStatus has the counts of a limiter.
var counts = [...][]string{
	Requests:    {"network", "ingressRequestRateLimiter"},
	Connections: {"queues", "ingressSessionEstablishment"},
}

// ErrUnsupported is the error of a server that has no such limiter.
var ErrUnsupported = errors.New("the server has no ingress limiters, they came with MongoDB 8.2")

// Config selects a server and the limit to tune on it.
type Config struct {
	// Client is connected to one server. It must not be nil, and not be closed while
	// the Server is in use.
	Client *mongo.Client
	// Limit is the limiter to move. The zero Limit is Requests.
	Limit Limit
	// Enable makes Set turn the limiter on, and bound its burst. Without it a limiter
	// that is off stays so, and Set fails, as its rate would mean nothing.
	Enable bool
	// BurstSeconds is how many seconds' worth may come at once, where Enable is set.
	// The server's own default is without bound, with which no rate limits anything.
	// Zero means 1; it must be positive.
	BurstSeconds float64
}

// A Server is one limit of one server. It is not safe for concurrent use; make one with
// [New].
type Server struct {
	config   Config
	database *mongo.Database
	names    names
	last     status
	latency  float64   // the last that was known
	alive    time.Time // when something last ended, or nothing was under way

	cores, memory float64 // of the host; memory in MB. NaN: not known
}

// New looks whether the server has the limiter, and returns a Server; or an error that
// is [ErrUnsupported] if it does not, or names the field of c that is wrong.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.BurstSeconds == 0 {
		c.BurstSeconds = 1
	}
	switch {
	case c.Client == nil:
		return nil, invalid.Field("mongotune", "Client", nil, "a client")
	case c.Limit > Connections:
		return nil, invalid.Field("mongotune", "Limit", c.Limit, "Requests or Connections")
	case !(c.BurstSeconds > 0 && c.BurstSeconds <= math.MaxFloat64):
		return nil, invalid.Field("mongotune", "BurstSeconds", c.BurstSeconds, "above 0")
	}
	s := &Server{config: c, database: c.Client.Database("admin"), names: parameters[c.Limit], latency: math.NaN()}
	_, err := s.Settings(ctx)
	s.host(ctx)
	return s, err
}

// host asks for the size of the host, which few may do; without it the shares of it are
// not known.
func (s *Server) host(ctx context.Context) {
	s.cores, s.memory = math.NaN(), math.NaN()
	doc, err := s.run(ctx, bson.D{{Key: "hostInfo", Value: 1}})
	if err != nil {
		return
	}
	s.cores, s.memory = number(doc, "system", "numCores"), number(doc, "system", "memLimitMB")
}

// Settings are the parameters of the limiter as they are in force.
type Settings struct {
	Enabled      bool
	Rate         float64 // per second
	BurstSeconds float64
}

// String returns the settings in words, such as "off (2147483647/s, burst 1 s)".
func (s Settings) String() string {
	state := "off"
	if s.Enabled {
		state = "on"
	}
	return fmt.Sprintf("%s (%.0f/s, burst %.4g s)", state, s.Rate, s.BurstSeconds)
}

// invalidOptions is the code for an unknown parameter.
const invalidOptions = 72

// Settings asks the server for the parameters of the limiter.
func (s *Server) Settings(ctx context.Context) (set Settings, err error) {
	doc, err := s.run(ctx, bson.D{
		{Key: "getParameter", Value: 1}, {Key: s.names.enabled, Value: 1}, {Key: s.names.rate, Value: 1}, {Key: s.names.burst, Value: 1},
	})
	if rejected, ok := errors.AsType[mongo.CommandError](err); ok && rejected.Code == invalidOptions || err == nil && doc.Lookup(s.names.rate).IsZero() {
		return set, s.unsupported(ctx)
	}
	if err != nil {
		return set, err
	}
	set.Enabled, _ = doc.Lookup(s.names.enabled).BooleanOK()
	set.Rate, set.BurstSeconds = number(doc, s.names.rate), number(doc, s.names.burst)
	return set, nil
}

// unsupported says which version it is that has no limiter.
func (s *Server) unsupported(ctx context.Context) error {
	version := "unknown"
	if doc, err := s.run(ctx, bson.D{{Key: "buildInfo", Value: 1}}); err == nil { // else it stays unknown
		version, _ = doc.Lookup("version").StringValueOK()
	}
	return fmt.Errorf("mongotune: version %.32s has no parameter %s: %w", version, s.names.rate, ErrUnsupported)
}

// Set puts a rate in force, rounded to a whole number of at least 1.
func (s *Server) Set(ctx context.Context, limit float64) error {
	if !(limit > 0) {
		return fmt.Errorf("mongotune: a limit of %v, must be positive", limit)
	}
	set := bson.D{{Key: "setParameter", Value: 1}, {Key: s.names.rate, Value: int32(min(max(1, math.Round(limit)), math.MaxInt32))}}
	if s.config.Enable {
		set = append(set, bson.E{Key: s.names.burst, Value: s.config.BurstSeconds}, bson.E{Key: s.names.enabled, Value: true})
	} else if is, err := s.Settings(ctx); err != nil {
		return err
	} else if !is.Enabled {
		return fmt.Errorf("mongotune: %s is false, and the rate means nothing: set it, or Enable", s.names.enabled)
	}
	_, err := s.run(ctx, set)
	return err
}

// Restore puts all parameters of the limiter in force, as [Server.Settings] returned them.
func (s *Server) Restore(ctx context.Context, to Settings) error {
	set := bson.D{{Key: "setParameter", Value: 1}, {Key: s.names.enabled, Value: to.Enabled}}
	if !math.IsNaN(to.Rate) {
		set = append(set, bson.E{Key: s.names.rate, Value: int32(min(max(1, to.Rate), math.MaxInt32))})
	}
	if !math.IsNaN(to.BurstSeconds) {
		set = append(set, bson.E{Key: s.names.burst, Value: to.BurstSeconds})
	}
	_, err := s.run(ctx, set)
	return err
}

// run runs a command on the server.
func (s *Server) run(ctx context.Context, command bson.D) (bson.Raw, error) {
	doc, err := s.database.RunCommand(ctx, command).Raw()
	if err == nil {
		err = doc.Validate() // the driver has not, and a lookup may panic
	}
	if err != nil {
		return nil, fmt.Errorf("mongotune: %s: %w", command[0].Key, err)
	}
	return doc, nil
}

// number returns a number of a document as a float64, NaN without one. It goes down the path
// itself: Validate does not look into embedded documents, and a lookup of the driver panics at a
// malformed one.
func number(doc bson.Raw, path ...string) float64 {
	for ; len(path) > 1; path = path[1:] {
		inner, ok := doc.Lookup(path[0]).DocumentOK()
		if !ok || inner.Validate() != nil {
			return math.NaN()
		}
		doc = inner
	}
	if v, ok := doc.Lookup(path[0]).AsFloat64OK(); ok {
		return v
	}
	return math.NaN()
}

// sections of serverStatus that are large, and not looked at.
var sections = []string{
	"asserts", "electionMetrics", "flowControl", "indexBuilds", "indexStats", "locks", "logicalSessionRecordCache", "metrics",
	"opWriteConcernCounters", "oplogTruncation", "repl", "security", "shardingStatistics", "tcmalloc", "tenantMigrations",
	"transactions", "twoPhaseCommitCoordinator", "wiredTiger",
}

// A Reading is what a server did since the last one. What is not known is NaN, as package
// tune takes it: all counts over time are unknown at the first reading of a process.
type Reading struct {
	// Used is the number of requests per second that the limiter admitted.
	Used float64
	// Completed is how many reads and writes ended per second, whatever let them in. While a
	// queue is worked off it is what the server can do, and Used may be less.
	Completed float64
	// Rejected is the share of arrivals that the limiter rejected.
	Rejected float64
	// Latency is the mean of the reads and writes that have ended, in ms. While none ends
	// though some are under way, it is the time since one did, if that is longer than the
	// last mean.
	Latency float64
	// Queued is how many operations wait for a lock or a ticket, Active how many run.
	Queued, Active float64
	// Connections is how many are open.
	Connections float64
	// CPU is what the process used of all cores, Memory what it has of the host's
	// memory, Tickets the share of the tickets for reads or for writes, whichever is
	// greater, that is in use. CPU is reported on Linux only.
	CPU, Memory, Tickets float64
	// Restarted says that the process is another one than at the last reading: the
	// limit must be set again.
	Restarted bool
}

// status is what serverStatus says.
type status struct {
	at                              time.Time
	process                         string
	started                         time.Time // by the server's clock; zero if that is not known
	admitted, rejected, ops, micros float64
	queued, active, current         float64
	cpu, memory, tickets            float64 // cpu in microseconds since its start
}

// Read asks the server for its status, at the time now.
func (s *Server) Read(ctx context.Context, now time.Time) (r Reading, err error) {
	command := bson.D{{Key: "serverStatus", Value: 1}}
	for _, name := range sections {
		command = append(command, bson.E{Key: name, Value: 0})
	}
	doc, err := s.run(ctx, command)
	if err != nil {
		return r, err
	}
	is, was := s.parse(doc, now), s.last
	known, restarted := was.process != "", is.replaces(&was)
	s.last = is
	r = Reading{
		Used: math.NaN(), Completed: math.NaN(), Rejected: math.NaN(), Latency: math.NaN(),
		Queued: is.queued, Active: is.active, Connections: is.current,
		CPU: math.NaN(), Memory: is.memory / s.memory, Tickets: is.tickets,
		Restarted: known && restarted,
	}
	if known && !restarted && is.at.After(was.at) {
		s.compare(&r, is, was)
	}
	return r, nil
}

// replaces reports whether x is of another process than was. In a container each has the
// same number. A clock that is set forward looks like a restart, which does no harm.
func (x *status) replaces(was *status) bool {
	return x.process != was.process || !was.started.IsZero() && x.started.Sub(was.started) > time.Second
}

// compare fills in what was counted since the last reading.
func (s *Server) compare(r *Reading, is, was status) {
	admitted, rejected := is.admitted-was.admitted, is.rejected-was.rejected
	r.Used = admitted / is.at.Sub(was.at).Seconds()
	r.Completed = (is.ops - was.ops) / is.at.Sub(was.at).Seconds()
	r.CPU = (is.cpu - was.cpu) / 1e6 / is.at.Sub(was.at).Seconds() / s.cores
	r.Rejected = rejected / math.Max(1, admitted+rejected)
	switch ops := is.ops - was.ops; {
	case ops > 0:
		s.latency, s.alive = (is.micros-was.micros)/1000/ops, is.at
	case !(is.active+is.queued > 0):
		s.latency, s.alive = 0, is.at // nothing is under way
	case !s.alive.IsZero():
		s.latency = math.Max(s.latency, is.at.Sub(s.alive).Seconds()*1000)
	}
	r.Latency = s.latency
}

func (s *Server) parse(doc bson.Raw, now time.Time) status {
	limiter := counts[s.config.Limit]
	of := func(path ...string) float64 { return number(doc, path...) }
	x := status{
		at:       now,
		admitted: of(append(limiter[:2:2], "successfulAdmissions")...),
		rejected: of(append(limiter[:2:2], "rejectedAdmissions")...),
		queued:   of("globalLock", "currentQueue", "total"),
		active:   of("globalLock", "activeClients", "readers") + of("globalLock", "activeClients", "writers"),
		current:  of("connections", "current"),
		cpu:      of("extra_info", "user_time_us") + of("extra_info", "system_time_us"),
		memory:   of("mem", "resident"),
		tickets: math.Max(of("queues", "execution", "read", "out")/of("queues", "execution", "read", "totalTickets"),
			of("queues", "execution", "write", "out")/of("queues", "execution", "write", "totalTickets")),
	}
	for _, kind := range []string{"reads", "writes"} { // the caller's own are among the commands
		x.ops += of("opLatencies", kind, "ops")
		x.micros += of("opLatencies", kind, "latency")
	}
	host, _ := doc.Lookup("host").StringValueOK()
	x.process = fmt.Sprintf("%.256s %v", host, of("pid"))
	up, ok := doc.Lookup("uptimeMillis").AsInt64OK()
	if clock, is := doc.Lookup("localTime").TimeOK(); is && ok {
		x.started = clock.Add(-time.Duration(up) * time.Millisecond)
	}
	return x
}
