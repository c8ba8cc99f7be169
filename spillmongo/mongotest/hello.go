package mongotest

import (
	"encoding/binary"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

const (
	version        = "8.2.0"
	minWireVersion = 0
	maxWireVersion = 27
	sessionMinutes = 30
)

// A topologyVersion counts how often the topology has changed in the life of a node.
type topologyVersion struct {
	ProcessID bson.ObjectID `bson:"processId"`
	Counter   int64         `bson:"counter"`
}

type helloCommand struct {
	Client struct {
		Application struct {
			Name string `bson:"name"`
		} `bson:"application"`
		Driver struct {
			Name string `bson:"name"`
		} `bson:"driver"`
	} `bson:"client"`
	Compression     []string         `bson:"compression"`
	LoadBalanced    bool             `bson:"loadBalanced"`
	MaxAwaitTimeMS  int64            `bson:"maxAwaitTimeMS"`
	TopologyVersion *topologyVersion `bson:"topologyVersion"`

	Mechanisms  string   `bson:"saslSupportedMechs"`
	Speculative bson.Raw `bson:"speculativeAuthenticate"`
}

// runHello answers hello and isMaster. With a topologyVersion that is still true it
// answers when that changes, or after maxAwaitTimeMS.
func runHello(r *request) (bson.D, error) {
	var cmd helloCommand
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if err := r.greet(&cmd); err != nil {
		return nil, err
	}
	if cmd.TopologyVersion == nil {
		r.told, _ = r.node.topology()
		return r.helloReply(&cmd), nil
	}
	if !r.stream { // the first reply: compare with what the client knows
		r.stream, r.told = true, *cmd.TopologyVersion
	}
	limit := milliseconds(cmd.MaxAwaitTimeMS)
	if longest := r.node.deployment.config.HelloInterval; longest > 0 {
		limit = min(limit, longest)
	}
	now, changed := r.node.topology()
	if r.told == now && !r.conn.wait(limit, changed) {
		return nil, errClose
	}
	r.told, _ = r.node.topology()
	return r.helloReply(&cmd), nil
}

// milliseconds is a time that a client asks for, up to an hour.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), time.Hour.Milliseconds())) * time.Millisecond
}

// greet takes note of what the first hello of a connection says of the client.
func (r *request) greet(cmd *helloCommand) error {
	c := &r.conn.client
	if c.greeted {
		return nil
	}
	if r.node.deployment.config.Topology == LoadBalanced && !cmd.LoadBalanced {
		return failf(docdb.BadValue, "the node is behind a load balancer; connect with loadBalanced=true")
	}
	*c = client{
		greeted: true,
		appName: cmd.Client.Application.Name,
		driver:  cmd.Client.Driver.Name,
	}
	return nil
}

func (r *request) helloReply(cmd *helloCommand) bson.D {
	doc := append(bson.D{{Key: "helloOk", Value: true}}, r.role()...)
	if r.name != "hello" {
		doc = append(doc, bson.E{Key: "ismaster", Value: r.node.deployment.writable(r.node)})
	}
	doc = append(doc,
		bson.E{Key: "topologyVersion", Value: r.told},
		bson.E{Key: "maxBsonObjectSize", Value: int32(wire.MaxDocumentSize)},
		bson.E{Key: "maxMessageSizeBytes", Value: int32(wire.MaxMessageSize)},
		bson.E{Key: "maxWriteBatchSize", Value: int32(wire.MaxBatch)},
		bson.E{Key: "localTime", Value: time.Now()},
		bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(sessionMinutes)},
		bson.E{Key: "minWireVersion", Value: int32(minWireVersion)},
		bson.E{Key: "maxWireVersion", Value: int32(maxWireVersion)},
		bson.E{Key: "readOnly", Value: false},
		bson.E{Key: "connectionId", Value: r.conn.id},
	)
	return append(append(doc, compression(cmd.Compression)...), r.greetAuth(cmd)...)
}

// compression answers a client that asks for compression with the ones of its compressors
// that there are, in its order.
func compression(wanted []string) bson.D {
	var both []string
	for _, name := range wanted {
		if slices.Contains(wire.Compressors, name) && !slices.Contains(both, name) {
			both = append(both, name)
		}
	}
	if both == nil {
		return nil
	}
	return bson.D{{Key: "compression", Value: both}}
}

// role is what the node is to the others.
func (r *request) role() bson.D {
	d := r.node.deployment
	doc := bson.D{{Key: "isWritablePrimary", Value: d.writable(r.node)}}
	switch d.config.Topology {
	case ReplicaSet:
		doc = append(doc, r.member()...)
	case Sharded:
		doc = append(doc, bson.E{Key: "msg", Value: "isdbgrid"})
	case LoadBalanced:
		doc = append(doc, bson.E{Key: "msg", Value: "isdbgrid"}, bson.E{Key: "serviceId", Value: r.node.service})
	case Standalone:
	}
	return doc
}

// member is what a member of a replica set says of itself and of the set.
func (r *request) member() bson.D {
	d := r.node.deployment
	primary, term := d.elected()
	hosts := d.addresses()
	doc := bson.D{
		{Key: "setName", Value: setName},
		{Key: "setVersion", Value: int32(1)},
		{Key: "hosts", Value: hosts},
		{Key: "me", Value: r.node.address},
		{Key: "secondary", Value: primary != r.node.index},
		{Key: "lastWrite", Value: bson.D{{Key: "lastWriteDate", Value: time.Now()}}},
	}
	if primary >= 0 {
		doc = append(doc, bson.E{Key: "primary", Value: hosts[primary]})
	}
	if primary == r.node.index {
		var id bson.ObjectID
		binary.BigEndian.PutUint64(id[4:], uint64(term))
		doc = append(doc, bson.E{Key: "electionId", Value: id})
	}
	return doc
}
