//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/version"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/seed90641741/spillway"
)

// errUnknownDriver says that retries of writes could go wrong with this driver.
var errUnknownDriver = errors.New("spillmongo: version " + version.Driver +
	" of the MongoDB driver calls its functions differently: use one of the versions that spillmongo requires")

// selfTest has the driver make each kind of operation, without a server, and returns an error if the call stack does
// not show what it is: the names there are the driver's own, and a release may change them. It runs once
// in a process, when the first Retrier is made.
var selfTest = sync.OnceValue(func() error {
	p := new(probe)
	client, err := mongo.Connect(&options.ClientOptions{Deployment: p}) //nolint:staticcheck // there is no other way
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknownDriver, err)
	}
	ctx := context.Background()
	return errors.Join(p.check(operations(ctx, p, client.Database("test"))), client.Disconnect(ctx))
})

// check has the driver make operations, and returns an error if the call stack shows another one.
func (p *probe) check(all []probed) error {
	for _, o := range all {
		p.seen = seen{}
		o.do()
		if p.seen != o.want {
			return fmt.Errorf("%w: %s: %+v, want %+v", errUnknownDriver, o.name, p.seen, o.want)
		}
	}
	return nil
}

// batchCursor begins the names of the functions that get more of a cursor, or end it.
var batchCursor = "x/mongo/driver.(*" + reflect.TypeFor[driver.BatchCursor]().Name() + ")."

// A probe is a deployment without a server. It notes what the call stack shows when an operation needs a connection.
type probe struct {
	seen  seen
	dials bool // it has connections, but nothing can be written
}

// seen is what the call stack shows.
type seen struct {
	kind                         spillway.Kind
	ends                         bool
	byRunCommand, byChangeStream bool
}

var (
	_ driver.Deployment = (*probe)(nil)
	_ driver.Server     = (*probe)(nil)

	errProbe = errors.New("spillmongo: no server")
)

// SelectServer implements [driver.Deployment].
func (p *probe) SelectServer(context.Context, description.ServerSelector) (driver.Server, error) {
	return p, nil
}

// Kind implements [driver.Deployment].
func (*probe) Kind() description.TopologyKind { return description.TopologyKindReplicaSet }

// GetServerSelectionTimeout implements [driver.Deployment].
func (*probe) GetServerSelectionTimeout() time.Duration { return 0 }

// RTTMonitor implements [driver.Server].
func (*probe) RTTMonitor() driver.RTTMonitor { return quick{} }

// Connection implements [driver.Server].
func (p *probe) Connection(context.Context) (*mnet.Connection, error) {
	p.seen.kind, p.seen.ends = callersKind()
	p.seen.byRunCommand, p.seen.byChangeStream = byRunCommand(), byChangeStream()
	if p.dials {
		return &mnet.Connection{ReadWriteCloser: broken{}, Describer: &primary{}}, nil
	}
	return nil, errProbe
}

// quick is a server that answers at once.
type quick struct{}

func (quick) EWMA() time.Duration { return 0 }
func (quick) Min() time.Duration  { return 0 }
func (quick) Stats() string       { return "" }

// broken is a connection by which nothing comes or goes.
type broken struct{}

func (broken) Read(context.Context) ([]byte, error) { return nil, errProbe }
func (broken) Write(context.Context, []byte) error  { return errProbe }
func (broken) Close() error                         { return nil }

// primary describes a connection to the primary of a replica set, as far as the driver asks.
type primary struct{ mnet.Describer }

func (*primary) Description() description.Server {
	timeout := int64(30)
	return description.Server{
		Kind: description.ServerKindRSPrimary, SessionTimeoutMinutes: &timeout,
		WireVersion: &description.VersionRange{Min: 8, Max: 25},
	}
}
func (*primary) ID() string                 { return "" }
func (*primary) ServerConnectionID() *int64 { return nil }
func (*primary) DriverConnectionID() int64  { return 0 }

// A probed is an operation, and what the call stack should show of it.
type probed struct {
	name string
	want seen
	do   func()
}

// operations returns one operation of each kind. All of them fail with errProbe.
func operations(ctx context.Context, p *probe, db *mongo.Database) []probed {
	c, one := db.Collection("c"), bson.D{{Key: "x", Value: 1}}
	set := bson.D{{Key: "$set", Value: one}}
	read, write := seen{kind: spillway.KindRead}, seen{kind: spillway.KindWrite}
	return []probed{
		{"find", read, func() { _, _ = c.Find(ctx, one) }},
		{"findOne", read, func() { _ = c.FindOne(ctx, one).Err() }},
		{"count", read, func() { _, _ = c.EstimatedDocumentCount(ctx) }},
		{"distinct", read, func() { _ = c.Distinct(ctx, "x", one).Err() }},
		{"listCollections", read, func() { _, _ = db.ListCollections(ctx, one) }},
		{"listDatabases", read, func() { _, _ = db.Client().ListDatabases(ctx, one) }},
		{"listIndexes", read, func() { _, _ = c.Indexes().List(ctx) }},
		{"insert", write, func() { _, _ = c.InsertOne(ctx, one) }},
		{"update", write, func() { _, _ = c.UpdateOne(ctx, one, set) }},
		{"delete", write, func() { _, _ = c.DeleteOne(ctx, one) }},
		{"findAndModify", write, func() { _ = c.FindOneAndUpdate(ctx, one, set).Err() }},
		{"bulkWrite", write, func() { _, _ = c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(one)}) }},
		{"clientBulkWrite", write, func() { clientBulkWrite(ctx, db, one) }},
		{"create", write, func() { _ = db.CreateCollection(ctx, "c") }},
		{"drop", write, func() { _ = c.Drop(ctx) }},
		{"dropDatabase", write, func() { _ = db.Drop(ctx) }},
		{"createIndexes", write, func() { _, _ = c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: one}) }},
		{"dropIndexes", write, func() { _ = c.Indexes().DropOne(ctx, "x") }},
		{"createSearchIndexes", write, func() { _, _ = c.SearchIndexes().CreateOne(ctx, mongo.SearchIndexModel{Definition: one}) }},
		{"updateSearchIndex", write, func() { _ = c.SearchIndexes().UpdateOne(ctx, "x", one) }},
		{"dropSearchIndex", write, func() { _ = c.SearchIndexes().DropOne(ctx, "x") }},
		{"aggregate", seen{}, func() { _, _ = c.Aggregate(ctx, mongo.Pipeline{}) }},
		{"runCommand", seen{byRunCommand: true}, func() { _ = db.RunCommand(ctx, one).Err() }},
		{"runCommandCursor", seen{byRunCommand: true}, func() { _, _ = db.RunCommandCursor(ctx, one) }},
		{"watch", seen{kind: spillway.KindRead, byChangeStream: true}, func() { _, _ = c.Watch(ctx, mongo.Pipeline{}) }},
		{"commitTransaction", seen{kind: spillway.KindWrite, ends: true}, func() { p.transaction(ctx, c, (*mongo.Session).CommitTransaction) }},
		{"abortTransaction", seen{kind: spillway.KindWrite, ends: true}, func() { p.transaction(ctx, c, (*mongo.Session).AbortTransaction) }},
	}
}

func clientBulkWrite(ctx context.Context, db *mongo.Database, document bson.D) {
	_, _ = db.Client().BulkWrite(ctx, []mongo.ClientBulkWrite{
		{Database: db.Name(), Collection: "c", Model: mongo.NewClientInsertOneModel().SetDocument(document)},
	})
}

// transaction ends a transaction. The driver does so only if a command was written before.
func (p *probe) transaction(ctx context.Context, c *mongo.Collection, end func(*mongo.Session, context.Context) error) {
	s, err := c.Database().Client().StartSession()
	if err != nil {
		return
	}
	defer s.EndSession(ctx)
	if s.StartTransaction() != nil {
		return
	}
	p.dials = true
	_, _ = c.InsertOne(mongo.NewSessionContext(ctx, s), bson.D{})
	p.dials, p.seen = false, seen{}
	_ = end(s, ctx)
}
