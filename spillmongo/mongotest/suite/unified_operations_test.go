package suite_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// unsupported is what the runner cannot do: the test is skipped.
type unsupported string

func (u unsupported) Error() string { return needsRunner + string(u) }

// arguments are the arguments of an operation. An argument that was not read by the end of the
// operation is not supported by the runner.
type arguments struct {
	raw   bson.Raw
	asked map[string]bool
	set   map[string]bool // those of them that options were read from
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
	a := arguments{op.Arguments, map[string]bool{}, map[string]bool{}}
	if a.raw == nil {
		a.raw = bson.Raw{5, 0, 0, 0, 0}
	}
	ctx := u.ctx
	if id := a.text("session"); id != "" && op.Object != "testRunner" {
		ctx = mongo.NewSessionContext(ctx, u.entities[id].(*mongo.Session))
	}
	if v, ok := a.get("timeoutMS"); ok {
		if v.AsInt64() == 0 {
			ctx = endless{ctx}
		} else {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(v.AsInt64())*time.Millisecond)
			defer cancel()
		}
	}
	got, err := u.dispatch(ctx, op, a)
	if err != nil && strings.HasPrefix(err.Error(), needsDriver) {
		return nil, err
	}
	if unknown := a.all(op.Name); unknown != nil {
		return nil, unknown
	}
	return got, err
}

// all errs if there are arguments that were not asked for.
func (a arguments) all(of string) error {
	for _, e := range must(a.raw.Elements()) {
		if !a.asked[e.Key()] && e.Key() == "maxTimeMS" {
			return errors.New(needsDriver + "maxTimeMS, contexts have a deadline")
		}
		if !a.asked[e.Key()] {
			return unsupported(fmt.Sprintf("argument %s of %s", e.Key(), of))
		}
	}
	return nil
}

// endless is the context of an operation with a timeoutMS of 0, which the driver has for
// clients only: it makes the driver believe that the client's was applied.
type endless struct{ context.Context }

func (e endless) Value(key any) any {
	if fmt.Sprintf("%T", key) == "csot.clientLevel" {
		return true
	}
	return e.Context.Value(key)
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
	case *mongo.GridFSBucket:
		return bucketOperation(ctx, e, op.Name, a)
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
	case "iterateOnce":
		if tries, ok := c.(interface{ TryNext(context.Context) bool }); ok && !tries.TryNext(ctx) {
			return nil, c.Err()
		}
		var doc bson.D
		err := c.Decode(&doc)
		return doc, err
	case "iterateUntilDocumentOrError":
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
		return c.ListDatabases(ctx, a.doc("filter"), optionsOf[options.ListDatabasesOptions](a))
	case "listDatabaseNames":
		return c.ListDatabaseNames(ctx, a.doc("filter"), optionsOf[options.ListDatabasesOptions](a))
	case "listDatabaseObjects":
		return nil, errors.New(needsDriver + "listDatabaseObjects")
	case "createChangeStream":
		return c.Watch(ctx, a.list("pipeline"), optionsOf[options.ChangeStreamOptions](a))
	case "clientBulkWrite":
		return clientBulkWrite(ctx, c, a)
	case "dropDatabase":
		return nil, c.Database(a.text("database")).Drop(ctx)
	case "close":
		return nil, c.Disconnect(ctx)
	default:
		return nil, unsupported(name)
	}
}

func clientBulkWrite(ctx context.Context, c *mongo.Client, a arguments) (any, error) {
	var writes []mongo.ClientBulkWrite
	for _, one := range a.list("models") {
		e := must(one.(bson.Raw).Elements())[0]
		m := arguments{e.Value().Document(), map[string]bool{}, map[string]bool{}}
		db, coll, _ := strings.Cut(m.text("namespace"), ".")
		w := mongo.ClientBulkWrite{Database: db, Collection: coll}
		switch e.Key() {
		case "insertOne":
			w.Model = mongo.NewClientInsertOneModel().SetDocument(m.doc("document"))
		case "updateOne":
			w.Model = mongo.NewClientUpdateOneModel().SetFilter(m.doc("filter")).SetUpdate(m.update())
		case "updateMany":
			w.Model = mongo.NewClientUpdateManyModel().SetFilter(m.doc("filter")).SetUpdate(m.update())
		case "replaceOne":
			w.Model = mongo.NewClientReplaceOneModel().SetFilter(m.doc("filter")).SetReplacement(m.doc("replacement"))
		case "deleteOne":
			w.Model = mongo.NewClientDeleteOneModel().SetFilter(m.doc("filter"))
		case "deleteMany":
			w.Model = mongo.NewClientDeleteManyModel().SetFilter(m.doc("filter"))
		default:
			return nil, unsupported("clientBulkWrite of " + e.Key())
		}
		if err := m.all("clientBulkWrite of " + e.Key()); err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	o := options.ClientBulkWrite()
	if v, ok := a.get("ordered"); ok {
		o.SetOrdered(v.Boolean())
	}
	if v, ok := a.get("verboseResults"); ok {
		o.SetVerboseResults(v.Boolean())
	}
	if v, ok := a.get("writeConcern"); ok {
		o.SetWriteConcern(concern(v.Document()))
	}
	return c.BulkWrite(ctx, writes, o)
}

func databaseOperation(ctx context.Context, d *mongo.Database, name string, a arguments) (any, error) {
	switch name {
	case "aggregate":
		cur, err := d.Aggregate(ctx, a.list("pipeline"), optionsOf[options.AggregateOptions](a))
		return all(ctx, cur, err)
	case "listCollections":
		cur, err := d.ListCollections(ctx, a.doc("filter"), optionsOf[options.ListCollectionsOptions](a))
		return all(ctx, cur, err)
	case "listCollectionNames":
		return d.ListCollectionNames(ctx, a.doc("filter"), optionsOf[options.ListCollectionsOptions](a))
	case "runCommand":
		a.get("commandName")
		return d.RunCommand(ctx, a.doc("command"), optionsOf[options.RunCmdOptions](a)).Raw()
	case "runCursorCommand", "createCommandCursor":
		return commandCursor(ctx, d, name, a)
	case "createChangeStream":
		return d.Watch(ctx, a.list("pipeline"), optionsOf[options.ChangeStreamOptions](a))
	case "createCollection":
		if on := a.text("viewOn"); on != "" {
			return nil, d.CreateView(ctx, a.text("collection"), on, a.list("pipeline"), optionsOf[options.CreateViewOptions](a))
		}
		return nil, d.CreateCollection(ctx, a.text("collection"), optionsOf[options.CreateCollectionOptions](a))
	case "dropCollection":
		return nil, d.Collection(a.text("collection")).Drop(ctx)
	case "modifyCollection":
		a.get("collection")
		a.asked["validator"] = true
		return nil, d.RunCommand(ctx, append(bson.D{{Key: "collMod", Value: a.text("collection")}}, a.rest("collection")...)).Err()
	default:
		return nil, unsupported(name)
	}
}

// rest returns the arguments but for one.
func (a arguments) rest(but string) (d bson.D) {
	for _, e := range must(a.raw.Elements()) {
		if a.asked[e.Key()] = true; e.Key() != but {
			d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return d
}

func commandCursor(ctx context.Context, d *mongo.Database, name string, a arguments) (any, error) {
	a.get("commandName")
	for _, key := range []string{"timeoutMode", "cursorType"} {
		if _, ok := a.get(key); ok {
			return nil, errors.New(needsDriver + key + " of a command with a cursor")
		}
	}
	cur, err := d.RunCommandCursor(ctx, a.doc("command"))
	if err != nil {
		return nil, err
	}
	if v, ok := a.get("batchSize"); ok {
		cur.SetBatchSize(v.Int32())
	}
	if v, ok := a.get("maxTimeMS"); ok {
		cur.SetMaxAwaitTime(time.Duration(v.AsInt64()) * time.Millisecond)
	}
	if v, ok := a.get("comment"); ok {
		cur.SetComment(plainValue(v))
	}
	if name == "createCommandCursor" {
		return cur, nil
	}
	return all(ctx, cur, nil)
}

func readOperation(ctx context.Context, c *mongo.Collection, name string, a arguments) (any, error) {
	switch name {
	case "aggregate":
		cur, err := c.Aggregate(ctx, a.list("pipeline"), optionsOf[options.AggregateOptions](a))
		return all(ctx, cur, err)
	case "find", "createFindCursor":
		cur, err := c.Find(ctx, a.doc("filter"), optionsOf[options.FindOptions](a))
		if name != "find" {
			return cur, err
		}
		return all(ctx, cur, err)
	case "findOne":
		return single(c.FindOne(ctx, a.doc("filter"), optionsOf[options.FindOneOptions](a)))
	case "countDocuments":
		return c.CountDocuments(ctx, a.doc("filter"), optionsOf[options.CountOptions](a))
	case "count":
		return nil, errors.New(needsDriver + "count")
	case "mapReduce":
		return nil, errors.New(needsDriver + "mapReduce")
	case "estimatedDocumentCount":
		return c.EstimatedDocumentCount(ctx, optionsOf[options.EstimatedDocumentCountOptions](a))
	case "distinct":
		raw, err := c.Distinct(ctx, a.text("fieldName"), a.doc("filter"), optionsOf[options.DistinctOptions](a)).Raw()
		return bson.RawValue{Type: bson.TypeArray, Value: raw}, err
	case "createChangeStream":
		return c.Watch(ctx, a.list("pipeline"), optionsOf[options.ChangeStreamOptions](a))
	default:
		return nil, errNotThis
	}
}

// single returns a document, or nil if absent.
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
		return c.InsertOne(ctx, a.doc("document"), optionsOf[options.InsertOneOptions](a))
	case "insertMany":
		return c.InsertMany(ctx, a.list("documents"), optionsOf[options.InsertManyOptions](a))
	case "deleteOne":
		return c.DeleteOne(ctx, a.doc("filter"), optionsOf[options.DeleteOneOptions](a))
	case "deleteMany":
		return c.DeleteMany(ctx, a.doc("filter"), optionsOf[options.DeleteManyOptions](a))
	case "replaceOne":
		return c.ReplaceOne(ctx, a.doc("filter"), a.doc("replacement"), optionsOf[options.ReplaceOptions](a))
	case "updateOne":
		return c.UpdateOne(ctx, a.doc("filter"), a.update(), optionsOf[options.UpdateOneOptions](a))
	case "updateMany":
		return c.UpdateMany(ctx, a.doc("filter"), a.update(), optionsOf[options.UpdateManyOptions](a))
	case "findOneAndDelete":
		return single(c.FindOneAndDelete(ctx, a.doc("filter"), optionsOf[options.FindOneAndDeleteOptions](a)))
	case "findOneAndReplace":
		return single(c.FindOneAndReplace(ctx, a.doc("filter"), a.doc("replacement"), optionsOf[options.FindOneAndReplaceOptions](a)))
	case "findOneAndUpdate":
		return single(c.FindOneAndUpdate(ctx, a.doc("filter"), a.update(), optionsOf[options.FindOneAndUpdateOptions](a)))
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
		m := arguments{e.Value().Document(), map[string]bool{}, map[string]bool{}}
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
	return c.BulkWrite(ctx, models, optionsOf[options.BulkWriteOptions](a))
}

func indexOperation(ctx context.Context, c *mongo.Collection, name string, a arguments) (any, error) {
	switch name {
	case "createIndex":
		o := options.Index()
		if s := a.text("name"); s != "" {
			o.SetName(s)
		}
		if v, ok := a.get("unique"); ok {
			o.SetUnique(v.Boolean())
		}
		return c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: a.doc("keys"), Options: o}, optionsOf[options.CreateIndexesOptions](a))
	case "dropIndex":
		return nil, c.Indexes().DropOne(ctx, a.text("name"), optionsOf[options.DropIndexesOptions](a))
	case "dropIndexes":
		return nil, c.Indexes().DropAll(ctx, optionsOf[options.DropIndexesOptions](a))
	case "listIndexes":
		cur, err := c.Indexes().List(ctx, optionsOf[options.ListIndexesOptions](a))
		return all(ctx, cur, err)
	case "listIndexNames":
		specs, err := c.Indexes().ListSpecifications(ctx, optionsOf[options.ListIndexesOptions](a))
		return len(specs), err
	case "rename":
		to := c.Database().Name() + "." + a.text("to")
		return nil, c.Database().Client().Database("admin").RunCommand(ctx, append(bson.D{
			{Key: "renameCollection", Value: c.Database().Name() + "." + c.Name()}, {Key: "to", Value: to},
		}, a.rest("to")...)).Err()
	default:
		return nil, unsupported(name)
	}
}

func bucketOptions(a arguments) *options.BucketOptionsBuilder {
	o := options.GridFSBucket()
	if s := a.text("bucketName"); s != "" {
		o.SetName(s)
	}
	if v, ok := a.get("chunkSizeBytes"); ok {
		o.SetChunkSizeBytes(int32(v.AsInt64()))
	}
	if v, ok := a.get("writeConcern"); ok {
		o.SetWriteConcern(concern(v.Document()))
	}
	if v, ok := a.get("readConcern"); ok {
		o.SetReadConcern(readConcern(v.Document()))
	}
	return o
}

// bucketOperation is one of GridFS.
func bucketOperation(ctx context.Context, b *mongo.GridFSBucket, name string, a arguments) (any, error) {
	id, _ := a.get("id")
	var out bytes.Buffer
	content := func(err error) (any, error) { return bson.Binary{Data: out.Bytes()}, err }
	switch name {
	case "upload":
		data := must(hex.DecodeString(a.doc("source").Lookup("$$hexBytes").StringValue()))
		a.asked["contentType"], a.asked["disableMD5"] = true, true // it is not sent any more
		return b.UploadFromStream(ctx, a.text("filename"), bytes.NewReader(data), optionsOf[options.GridFSUploadOptions](a))
	case "download":
		_, err := b.DownloadToStream(ctx, id, &out)
		return content(err)
	case "downloadByName":
		_, err := b.DownloadToStreamByName(ctx, a.text("filename"), &out, optionsOf[options.GridFSNameOptions](a))
		return content(err)
	case "delete":
		return nil, b.Delete(ctx, id)
	case "rename":
		return nil, b.Rename(ctx, id, a.text("newFilename"))
	case "drop":
		return nil, b.Drop(ctx)
	case "find":
		cur, err := b.Find(ctx, a.doc("filter"), optionsOf[options.GridFSFindOptions](a))
		return all(ctx, cur, err)
	case "deleteByName", "renameByName":
		return nil, errors.New(needsDriver + name + " of a bucket")
	default:
		return nil, unsupported(name + " of a bucket")
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
		return nil, s.StartTransaction(optionsOf[options.TransactionOptions](a))
	case "commitTransaction":
		return nil, s.CommitTransaction(ctx)
	case "abortTransaction":
		return nil, s.AbortTransaction(ctx)
	case "endSession":
		s.EndSession(ctx)
		return nil, nil
	case "getSnapshotTime":
		return s.SnapshotTime(), nil
	case "withTransaction":
		v, _ := a.get("callback")
		var steps []operation
		if err := bson.UnmarshalValue(v.Type, v.Value, &steps); err != nil {
			return nil, err
		}
		return s.WithTransaction(ctx, func(context.Context) (any, error) {
			for i := range steps {
				_, err := u.do(&steps[i])
				if steps[i].Error != nil {
					u.expectError(&steps[i], err)
				}
				if err != nil {
					return nil, err
				}
			}
			return nil, nil
		}, optionsOf[options.TransactionOptions](a))
	default:
		return nil, unsupported(name)
	}
}
