package mongotest

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Topology is what the nodes of a [Deployment] are to one another.
type Topology int

// The topologies. The zero Topology is ReplicaSet, because retryable writes and
// transactions need one that is not Standalone.
const (
	ReplicaSet   Topology = iota // one primary, which may change; the others are secondaries
	Standalone                   // one server of its own
	Sharded                      // mongoses in front of one cluster
	LoadBalanced                 // mongoses behind one address
)

func (t Topology) String() string {
	switch t {
	case ReplicaSet:
		return "replica set"
	case Standalone:
		return "standalone"
	case Sharded:
		return "sharded"
	case LoadBalanced:
		return "load balanced"
	default:
		return fmt.Sprintf("Topology(%d)", int(t))
	}
}

// maxNodes bounds Config.Nodes; a replica set has no more members.
const maxNodes = 50

// Config says what to start. The zero Config is a replica set of one node.
type Config struct {
	// Topology is what the nodes are to one another.
	Topology Topology

	// Nodes is how many there are, at most 50. Zero means 1. A standalone has one.
	Nodes int

	// Pipes lets clients connect through memory instead of the loopback network, so
	// that a test with a synctest bubble can hold the client, the server, and their
	// time. [Deployment.Options] has the dialer for it.
	Pipes bool

	// Parameters are server parameters, as for [Node.SetParameter], with which every
	// node starts.
	Parameters bson.D

	// Users may use the deployment, by name, with their passwords. They
	// authenticate by SCRAM-SHA-256 or SCRAM-SHA-1, against any database. Without any,
	// no client has to.
	Users map[string]string

	// HelloInterval is the longest that a hello which awaits a change of the topology
	// is held back. A MongoDB server holds it for the time that the client asks, which
	// is ten seconds by default; but a client that disconnects at the wrong moment
	// waits for that reply, and would slow down a test. Zero means 100 ms; negative
	// means the time that the client asks for.
	HelloInterval time.Duration

	// Observe, if not nil, is called with each command as it comes, before anything
	// is done about it. It is called by many goroutines at once.
	Observe func(Command)

	// Work is what each node can do. The zero Work takes no time.
	Work Work

	// MaxBytes bounds what the collections hold, with some overhead. Zero means
	// 256 MiB. It must not be negative.
	MaxBytes int
}

// A Command is what a client sent.
type Command struct {
	Node         int    // that got it
	ConnectionID int64  // as in the reply to hello
	RequestID    int32  // of the message
	AppName      string // of the client
	Database     string
	Name         string
	// Body is the command without its document sequences. It must not be kept, nor
	// changed.
	Body bson.Raw
}

func (c Config) validate() error {
	switch {
	case c.Topology < ReplicaSet || c.Topology > LoadBalanced:
		return invalid.Field("mongotest", "Topology", int(c.Topology), "ReplicaSet, Standalone, Sharded or LoadBalanced")
	case c.Nodes < 0 || c.Nodes > maxNodes:
		return invalid.Field("mongotest", "Nodes", c.Nodes, "1 to %d, or 0 for 1", maxNodes)
	case c.Topology == Standalone && c.Nodes > 1:
		return invalid.Field("mongotest", "Nodes", c.Nodes, "1 for a standalone")
	case c.Work.Tickets < 0 || c.Work.Command < 0 || c.Work.Connect < 0:
		return invalid.Field("mongotest", "Work", fmt.Sprintf("%+v", c.Work), "0 or more in all fields")
	case c.MaxBytes < 0:
		return invalid.Field("mongotest", "MaxBytes", c.MaxBytes, "0 or more")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Nodes == 0 {
		c.Nodes = 1
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 256 << 20
	}
	if c.HelloInterval == 0 {
		c.HelloInterval = 100 * time.Millisecond
	}
	return c
}
