package spillmongo_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// unsupported is what the runner cannot do: the test is skipped.
type unsupported string

func (u unsupported) Error() string { return "not known to this runner: " + string(u) }

// arguments are those of an operation. What was not asked for when it ends is one
// that the runner does not know.
type arguments struct {
	raw   bson.Raw
	asked map[string]bool
}

func (a arguments) get(key string) (bson.RawValue, bool) {
	a.asked[key] = true
	v, err := a.raw.LookupErr(key)
	return v, err == nil
}

func (a arguments) doc(key string) bson.Raw {
	v, ok := a.get(key)
	if !ok {
		return bson.Raw{5, 0, 0, 0, 0}
	}
	return v.Document()
}

func (a arguments) text(key string) string {
	v, _ := a.get(key)
	s, _ := v.StringValueOK()
	return s
}

func (a arguments) list(key string) (docs []any) {
	v, ok := a.get(key)
	if !ok {
		return []any{}
	}
	for _, one := range must(v.Array().Values()) {
		docs = append(docs, one.Document())
	}
	return docs
}

// update is a document or a pipeline.
func (a arguments) update() any {
	v, _ := a.get("update")
	if _, ok := v.ArrayOK(); ok {
		return a.list("update")
	}
	return v.Document()
}

// do runs an operation and returns its result.
func (u *unified) do(op *operation) (any, error) {
	a := arguments{op.Arguments, map[string]bool{}}
	if a.raw == nil {
		a.raw = bson.Raw{5, 0, 0, 0, 0}
	}
	ctx := u.ctx
	if id := a.text("session"); id != "" && op.Object != "testRunner" {
		ctx = mongo.NewSessionContext(ctx, u.entities[id].(*mongo.Session))
	}
	if v, ok := a.get("timeoutMS"); ok {
		if v.AsInt64() == 0 {
			return nil, unsupported("timeoutMS of 0 for an operation")
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(v.AsInt64())*time.Millisecond)
		defer cancel()
	}
	got, err := u.dispatch(ctx, op, a)
	if unknown := a.all(op.Name); unknown != nil {
		return nil, unknown
	}
	return got, err
}

// all errs if there are arguments that were not asked for.
func (a arguments) all(of string) error {
	for _, e := range must(a.raw.Elements()) {
		if !a.asked[e.Key()] {
			return unsupported(fmt.Sprintf("argument %s of %s", e.Key(), of))
		}
	}
	return nil
}

func (u *unified) dispatch(ctx context.Context, op *operation, a arguments) (any, error) {
	if op.Object == "testRunner" {
		return nil, u.runnerOperation(op.Name, a)
	}
	switch e := u.entities[op.Object].(type) {
	case *mongo.Client:
		return clientOperation(ctx, e, op.Name, a)
	case *mongo.Database:
		return databaseOperation(ctx, e, op.Name, a)
	case *mongo.Collection:
		if got, err := readOperation(ctx, e, op.Name, a); err != errNotThis {
			return got, err
		}
		if got, err := writeOperation(ctx, e, op.Name, a); err != errNotThis {
			return got, err
		}
		return indexOperation(ctx, e, op.Name, a)
	case *mongo.Session:
		return u.sessionOperation(ctx, e, op.Name, a)
	case cursor:
		return cursorOperation(ctx, e, op.Name)
	default:
		return nil, unsupported(fmt.Sprintf("%s of %s", op.Name, op.Object))
	}
}

var errNotThis = fmt.Errorf("another operation")

// A cursor is one of documents or of changes.
type cursor interface {
	Close(ctx context.Context) error
	Next(ctx context.Context) bool
	Decode(to any) error
	Err() error
}

func cursorOperation(ctx context.Context, c cursor, name string) (any, error) {
	switch name {
	case "close":
		return nil, c.Close(ctx)
	case "iterateUntilDocumentOrError", "iterateOnce":
		if !c.Next(ctx) {
			return nil, c.Err()
		}
		var doc bson.D
		err := c.Decode(&doc)
		return doc, err
	default:
		return nil, unsupported(name)
	}
}

func all(ctx context.Context, c *mongo.Cursor, err error) ([]bson.D, error) {
	docs := []bson.D{}
	if err == nil {
		err = c.All(ctx, &docs)
	}
	return docs, err
}

// result returns what the driver returned under the names of the format.
func result(v any) any {
	switch r := v.(type) {
	case *mongo.InsertOneResult:
		return bson.D{{Key: "insertedId", Value: r.InsertedID}}
	case *mongo.UpdateResult:
		d := bson.D{{Key: "matchedCount", Value: r.MatchedCount}, {Key: "modifiedCount", Value: r.ModifiedCount}, {Key: "upsertedCount", Value: r.UpsertedCount}}
		if r.UpsertedID != nil {
			d = append(d, bson.E{Key: "upsertedId", Value: r.UpsertedID})
		}
		return d
	case *mongo.DeleteResult:
		return bson.D{{Key: "deletedCount", Value: r.DeletedCount}}
	case *mongo.BulkWriteResult:
		upserted := bson.D{}
		for i, id := range r.UpsertedIDs {
			upserted = append(upserted, bson.E{Key: strconv.FormatInt(i, 10), Value: id})
		}
		return bson.D{
			{Key: "insertedCount", Value: r.InsertedCount}, {Key: "matchedCount", Value: r.MatchedCount}, {Key: "modifiedCount", Value: r.ModifiedCount},
			{Key: "deletedCount", Value: r.DeletedCount}, {Key: "upsertedCount", Value: r.UpsertedCount}, {Key: "upsertedIds", Value: upserted},
		}
	default:
		return v
	}
}

func clientOperation(ctx context.Context, c *mongo.Client, name string, a arguments) (any, error) {
	switch name {
	case "listDatabases":
		return c.ListDatabases(ctx, a.doc("filter"))
	case "listDatabaseNames":
		return c.ListDatabaseNames(ctx, a.doc("filter"))
	case "createChangeStream":
		return c.Watch(ctx, a.list("pipeline"))
	case "clientBulkWrite":
		var writes []mongo.ClientBulkWrite
		for _, m := range a.list("models") {
			e := must(m.(bson.Raw).Elements())[0]
			d := e.Value().Document()
			db, coll, _ := strings.Cut(d.Lookup("namespace").StringValue(), ".")
			if e.Key() != "insertOne" {
				return nil, unsupported("clientBulkWrite of " + e.Key())
			}
			writes = append(writes, mongo.ClientBulkWrite{Database: db, Collection: coll, Model: mongo.NewClientInsertOneModel().SetDocument(d.Lookup("document").Document())})
		}
		return c.BulkWrite(ctx, writes)
	default:
		return nil, unsupported(name)
	}
}

func databaseOperation(ctx context.Context, d *mongo.Database, name string, a arguments) (any, error) {
	switch name {
	case "aggregate":
		cur, err := d.Aggregate(ctx, a.list("pipeline"))
		return all(ctx, cur, err)
	case "listCollections":
		cur, err := d.ListCollections(ctx, a.doc("filter"))
		return all(ctx, cur, err)
	case "listCollectionNames":
		return d.ListCollectionNames(ctx, a.doc("filter"))
	case "runCommand":
		a.get("commandName")
		return d.RunCommand(ctx, a.doc("command")).Raw()
	case "createChangeStream":
		return d.Watch(ctx, a.list("pipeline"))
	case "createCollection":
		return nil, d.CreateCollection(ctx, a.text("collection"))
	case "dropCollection":
		return nil, d.Collection(a.text("collection")).Drop(ctx)
	default:
		return nil, unsupported(name)
	}
}

func readOperation(ctx context.Context, c *mongo.Collection, name string, a arguments) (any, error) {
	switch name {
	case "aggregate":
		o := options.Aggregate()
		if v, ok := a.get("batchSize"); ok {
			o.SetBatchSize(v.Int32())
		}
		cur, err := c.Aggregate(ctx, a.list("pipeline"), o)
		return all(ctx, cur, err)
	case "find", "createFindCursor":
		o := options.Find()
		if v, ok := a.get("batchSize"); ok {
			o.SetBatchSize(v.Int32())
		}
		if v, ok := a.get("limit"); ok {
			o.SetLimit(v.AsInt64())
		}
		if v, ok := a.get("sort"); ok {
			o.SetSort(v.Document())
		}
		cur, err := c.Find(ctx, a.doc("filter"), o)
		if name != "find" {
			return cur, err
		}
		return all(ctx, cur, err)
	case "findOne":
		return single(c.FindOne(ctx, a.doc("filter")))
	case "countDocuments":
		return c.CountDocuments(ctx, a.doc("filter"))
	case "estimatedDocumentCount":
		return c.EstimatedDocumentCount(ctx)
	case "distinct":
		return c.Distinct(ctx, a.text("fieldName"), a.doc("filter")).Raw()
	case "createChangeStream":
		return c.Watch(ctx, a.list("pipeline"))
	default:
		return nil, errNotThis
	}
}

// single returns a document, or nil if there is none.
func single(r *mongo.SingleResult) (any, error) {
	doc, err := r.Raw()
	if err == mongo.ErrNoDocuments {
		return nil, nil
	}
	return doc, err
}

func writeOperation(ctx context.Context, c *mongo.Collection, name string, a arguments) (any, error) {
	switch name {
	case "insertOne":
		return c.InsertOne(ctx, a.doc("document"))
	case "insertMany":
		o := options.InsertMany()
		if v, ok := a.get("ordered"); ok {
			o.SetOrdered(v.Boolean())
		}
		return c.InsertMany(ctx, a.list("documents"), o)
	case "deleteOne":
		return c.DeleteOne(ctx, a.doc("filter"))
	case "deleteMany":
		return c.DeleteMany(ctx, a.doc("filter"))
	case "replaceOne":
		return c.ReplaceOne(ctx, a.doc("filter"), a.doc("replacement"))
	case "updateOne":
		return c.UpdateOne(ctx, a.doc("filter"), a.update())
	case "updateMany":
		return c.UpdateMany(ctx, a.doc("filter"), a.update())
	case "findOneAndDelete":
		return single(c.FindOneAndDelete(ctx, a.doc("filter")))
	case "findOneAndReplace":
		return single(c.FindOneAndReplace(ctx, a.doc("filter"), a.doc("replacement")))
	case "findOneAndUpdate":
		return single(c.FindOneAndUpdate(ctx, a.doc("filter"), a.update()))
	case "bulkWrite":
		return bulkWrite(ctx, c, a)
	default:
		return nil, errNotThis
	}
}

func bulkWrite(ctx context.Context, c *mongo.Collection, a arguments) (any, error) {
	var models []mongo.WriteModel
	for _, r := range a.list("requests") {
		e := must(r.(bson.Raw).Elements())[0]
		m := arguments{e.Value().Document(), map[string]bool{}}
		switch e.Key() {
		case "insertOne":
			models = append(models, mongo.NewInsertOneModel().SetDocument(m.doc("document")))
		case "updateOne":
			models = append(models, mongo.NewUpdateOneModel().SetFilter(m.doc("filter")).SetUpdate(m.update()))
		case "updateMany":
			models = append(models, mongo.NewUpdateManyModel().SetFilter(m.doc("filter")).SetUpdate(m.update()))
		case "replaceOne":
			models = append(models, mongo.NewReplaceOneModel().SetFilter(m.doc("filter")).SetReplacement(m.doc("replacement")))
		case "deleteOne":
			models = append(models, mongo.NewDeleteOneModel().SetFilter(m.doc("filter")))
		case "deleteMany":
			models = append(models, mongo.NewDeleteManyModel().SetFilter(m.doc("filter")))
		default:
			return nil, unsupported("bulkWrite of " + e.Key())
		}
		if err := m.all("bulkWrite of " + e.Key()); err != nil {
			return nil, err
		}
	}
	o := options.BulkWrite()
	if v, ok := a.get("ordered"); ok {
		o.SetOrdered(v.Boolean())
	}
	return c.BulkWrite(ctx, models, o)
}

func indexOperation(ctx context.Context, c *mongo.Collection, name string, a arguments) (any, error) {
	switch name {
	case "createIndex":
		return c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: a.doc("keys"), Options: options.Index().SetName(a.text("name"))})
	case "dropIndex":
		return nil, c.Indexes().DropOne(ctx, a.text("name"))
	case "dropIndexes":
		return nil, c.Indexes().DropAll(ctx)
	case "listIndexes":
		cur, err := c.Indexes().List(ctx)
		return all(ctx, cur, err)
	case "listIndexNames":
		specs, err := c.Indexes().ListSpecifications(ctx)
		return len(specs), err
	default:
		return nil, unsupported(name)
	}
}

func concern(doc bson.Raw) *writeconcern.WriteConcern {
	wc := &writeconcern.WriteConcern{}
	if w := doc.Lookup("w"); w.Type == bson.TypeString {
		wc.W = w.StringValue()
	} else if n, ok := w.AsInt64OK(); ok {
		wc.W = int(n)
	}
	if j, ok := doc.Lookup("journal").BooleanOK(); ok {
		wc.Journal = &j
	}
	return wc
}

func (u *unified) sessionOperation(ctx context.Context, s *mongo.Session, name string, a arguments) (any, error) {
	switch name {
	case "startTransaction":
		o := options.Transaction()
		if v, ok := a.get("writeConcern"); ok {
			o.SetWriteConcern(concern(v.Document()))
		}
		if _, ok := a.get("readPreference"); ok {
			o.SetReadPreference(readpref.Primary())
		}
		return nil, s.StartTransaction(o)
	case "commitTransaction":
		return nil, s.CommitTransaction(ctx)
	case "abortTransaction":
		return nil, s.AbortTransaction(ctx)
	case "endSession":
		s.EndSession(ctx)
		return nil, nil
	case "withTransaction":
		v, _ := a.get("callback")
		var steps []operation
		if err := bson.UnmarshalValue(v.Type, v.Value, &steps); err != nil {
			return nil, err
		}
		return s.WithTransaction(ctx, func(context.Context) (any, error) {
			for i := range steps {
				if _, err := u.do(&steps[i]); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	default:
		return nil, unsupported(name)
	}
}
