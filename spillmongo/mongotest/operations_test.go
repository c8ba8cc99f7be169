package mongotest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

func id(n int) bson.D { return bson.D{{Key: "_id", Value: n}} }

func doc(n, x int) bson.D { return append(id(n), bson.E{Key: "x", Value: x}) }

func set(field string, v any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: v}}}}
}

// TestOperations runs the operations of the driver and checks their results.
func TestOperations(t *testing.T) {
	type call func(ctx context.Context, db *mongo.Database, coll *mongo.Collection) (any, error)
	for _, test := range []struct {
		name string
		call call
		want any
	}{
		{"InsertOne", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			res, err := c.InsertOne(ctx, doc(9, 9))
			return res.InsertedID, err
		}, int32(9)},
		{"UpdateOne upserts", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			res, err := c.UpdateOne(ctx, id(9), set("y", 1), options.UpdateOne().SetUpsert(true))
			return res.UpsertedID, err
		}, int32(9)},
		{"UpdateMany", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			res, err := c.UpdateMany(ctx, bson.D{}, set("x", 11))
			return []int64{res.MatchedCount, res.ModifiedCount}, err
		}, []int64{3, 2}},
		{"ReplaceOne", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			if _, err := c.ReplaceOne(ctx, id(1), bson.D{{Key: "z", Value: true}}); err != nil {
				return nil, err
			}
			return one(c.FindOne(ctx, id(1)))
		}, bson.D{{Key: "_id", Value: int32(1)}, {Key: "z", Value: true}}},
		{"DeleteOne", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			res, err := c.DeleteOne(ctx, bson.D{})
			return res.DeletedCount, err
		}, int64(1)},
		{"FindOneAndUpdate", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return one(c.FindOneAndUpdate(ctx, id(1), bson.D{{Key: "$inc", Value: bson.D{{Key: "x", Value: 1}}}},
				options.FindOneAndUpdate().SetReturnDocument(options.After)))
		}, bson.D{{Key: "_id", Value: int32(1)}, {Key: "x", Value: int32(12)}}},
		{"FindOneAndDelete", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return one(c.FindOneAndDelete(ctx, bson.D{}, options.FindOneAndDelete().SetSort(bson.D{{Key: "x", Value: -1}})))
		}, bson.D{{Key: "_id", Value: int32(3)}, {Key: "x", Value: int32(33)}}},
		{"FindOneAndReplace of nothing", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			err := c.FindOneAndReplace(ctx, id(9), bson.D{}).Err()
			return errors.Is(err, mongo.ErrNoDocuments), nil
		}, true},
		{"FindOne", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return one(c.FindOne(ctx, bson.D{{Key: "x", Value: bson.D{{Key: "$gte", Value: 22.0}}}},
				options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 0}})))
		}, bson.D{{Key: "x", Value: int32(22)}}},
		{"BulkWrite", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			res, err := c.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewInsertOneModel().SetDocument(doc(4, 44)),
				mongo.NewUpdateOneModel().SetFilter(id(1)).SetUpdate(set("x", 0)),
				mongo.NewDeleteManyModel().SetFilter(bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 30}}}}),
			})
			return []int64{res.InsertedCount, res.ModifiedCount, res.DeletedCount}, err
		}, []int64{1, 1, 2}},
		{"CountDocuments", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return c.CountDocuments(ctx, bson.D{{Key: "x", Value: bson.D{{Key: "$ne", Value: 11}}}})
		}, int64(2)},
		{"EstimatedDocumentCount", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return c.EstimatedDocumentCount(ctx)
		}, int64(3)},
		{"Distinct", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			var out []int
			return &out, c.Distinct(ctx, "x", bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 3}}}}).Decode(&out)
		}, &[]int{11, 22}},
		{"Aggregate", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return all(c.Aggregate(ctx, mongo.Pipeline{
				{{Key: "$match", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$gt", Value: 11}}}}}},
				{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$x"}}}}}},
			}))(ctx)
		}, []bson.D{{{Key: "_id", Value: nil}, {Key: "sum", Value: int32(55)}}}},
		{"Aggregate with $out", func(ctx context.Context, db *mongo.Database, c *mongo.Collection) (any, error) {
			if _, err := all(c.Aggregate(ctx, mongo.Pipeline{{{Key: "$limit", Value: 2}}, {{Key: "$out", Value: "output"}}}))(ctx); err != nil {
				return nil, err
			}
			return db.Collection("output").EstimatedDocumentCount(ctx)
		}, int64(2)},
		{"Aggregate of a database", func(ctx context.Context, db *mongo.Database, _ *mongo.Collection) (any, error) {
			docs, err := all(db.Aggregate(ctx, mongo.Pipeline{{{Key: "$listLocalSessions", Value: bson.D{}}}, {{Key: "$limit", Value: 1}}}))(ctx)
			return len(docs), err
		}, 1},
		{"RunCommand", func(ctx context.Context, db *mongo.Database, _ *mongo.Collection) (any, error) {
			var out struct{ OK float64 }
			return &out, db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Decode(&out)
		}, &struct{ OK float64 }{1}},
		{"ListDatabaseNames", func(ctx context.Context, db *mongo.Database, _ *mongo.Collection) (any, error) {
			return db.Client().ListDatabaseNames(ctx, bson.D{{Key: "name", Value: bson.D{{Key: "$regex", Value: "^d"}}}})
		}, []string{"db"}},
		{"ListCollectionNames", func(ctx context.Context, db *mongo.Database, _ *mongo.Collection) (any, error) {
			return db.ListCollectionNames(ctx, bson.D{})
		}, []string{"c"}},
		{"indexes", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			name, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}, Options: options.Index().SetUnique(true)})
			if err != nil {
				return nil, err
			}
			_, err = c.InsertOne(ctx, doc(9, 11))
			twice := mongo.IsDuplicateKeyError(err)
			specs, err := c.Indexes().ListSpecifications(ctx)
			if err != nil {
				return nil, err
			}
			return []any{name, twice, len(specs)}, c.Indexes().DropOne(ctx, name)
		}, []any{"x_1", true, 2}},
		{"DropAll indexes", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			return nil, c.Indexes().DropAll(ctx)
		}, nil},
		{"CreateCollection", func(ctx context.Context, db *mongo.Database, _ *mongo.Collection) (any, error) {
			if err := db.CreateCollection(ctx, "new"); err != nil {
				return nil, err
			}
			return db.ListCollectionNames(ctx, bson.D{})
		}, []string{"c", "new"}},
		{"Drop", func(ctx context.Context, db *mongo.Database, c *mongo.Collection) (any, error) {
			if err := errors.Join(c.Drop(ctx), c.Drop(ctx), db.Drop(ctx)); err != nil {
				return nil, err
			}
			return c.EstimatedDocumentCount(ctx)
		}, int64(0)},
		{"Client.BulkWrite", func(ctx context.Context, db *mongo.Database, _ *mongo.Collection) (any, error) {
			res, err := db.Client().BulkWrite(ctx, []mongo.ClientBulkWrite{
				{Database: "db", Collection: "c", Model: mongo.NewClientInsertOneModel().SetDocument(doc(4, 44))},
				{Database: "db", Collection: "other", Model: mongo.NewClientUpdateOneModel().SetFilter(id(5)).SetUpdate(set("x", 1)).SetUpsert(true)},
				{Database: "db", Collection: "c", Model: mongo.NewClientDeleteManyModel().SetFilter(bson.D{})},
			}, options.ClientBulkWrite().SetVerboseResults(true))
			if err != nil {
				return nil, err
			}
			return []any{res.InsertedCount, res.UpsertedCount, res.DeletedCount, len(res.UpdateResults)}, nil
		}, []any{int64(1), int64(1), int64(4), 1}},
		{"Watch", func(ctx context.Context, _ *mongo.Database, c *mongo.Collection) (any, error) {
			stream, err := c.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(10*time.Second))
			if err != nil {
				return nil, err
			}
			defer stream.Close(ctx)
			go c.InsertOne(ctx, doc(7, 77))
			if !stream.Next(ctx) {
				return nil, stream.Err()
			}
			return stream.Current.Lookup("fullDocument", "x").Int32(), nil
		}, int32(77)},
		{"unacknowledged insert", func(ctx context.Context, db *mongo.Database, c *mongo.Collection) (any, error) {
			fire := db.Collection("c", options.Collection().SetWriteConcern(unacknowledged))
			if _, err := fire.InsertOne(ctx, doc(8, 8)); err != nil {
				return nil, err
			}
			for ctx.Err() == nil {
				if n, err := c.CountDocuments(ctx, id(8)); n == 1 || err != nil {
					return n, err
				}
			}
			return nil, ctx.Err()
		}, int64(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Sharded})
			db := connect(t, d).Database("db")
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			coll := db.Collection("c")
			if _, err := coll.InsertMany(ctx, []any{doc(1, 11), doc(2, 22), doc(3, 33)}); err != nil {
				t.Fatal(err)
			}
			got, err := test.call(ctx, db, coll)
			if err != nil {
				t.Fatal(err)
			}
			if !equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
