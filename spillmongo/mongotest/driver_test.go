package mongotest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// topologies are all kinds of deployment.
var topologies = []mongotest.Config{
	{Topology: mongotest.Standalone},
	{Topology: mongotest.ReplicaSet},
	{Topology: mongotest.ReplicaSet, Nodes: 3},
	{Topology: mongotest.Sharded, Nodes: 2},
	{Topology: mongotest.LoadBalanced, Nodes: 2},
	{Topology: mongotest.ReplicaSet, Nodes: 2, Pipes: true},
}

func TestEveryTopology(t *testing.T) {
	for _, c := range topologies {
		t.Run(c.Topology.String(), func(t *testing.T) {
			d := mongotest.Start(t, c)
			client := connect(t, d)
			ctx := t.Context()
			if err := client.Ping(ctx, nil); err != nil {
				t.Fatal(err)
			}
			coll := client.Database("db").Collection("c")
			var docs []any
			for i := range 5 {
				docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: i * i}})
			}
			if _, err := coll.InsertMany(ctx, docs); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.UpdateMany(ctx, bson.D{{Key: "x", Value: bson.D{{Key: "$gt", Value: 3}}}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
				t.Fatal(err)
			}
			cur, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2).SetSort(bson.D{{Key: "_id", Value: -1}}))
			if err != nil {
				t.Fatal(err)
			}
			var got []struct {
				ID int `bson:"_id"`
				X  int
			}
			if err := cur.All(ctx, &got); err != nil {
				t.Fatal(err)
			}
			if len(got) != 5 || got[0].X != 17 || got[4].X != 0 {
				t.Errorf("got %v", got)
			}
			if n, err := coll.CountDocuments(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{1, 2, 9}}}}}); n != 2 || err != nil {
				t.Errorf("count is %d, %v", n, err)
			}
			if res, err := coll.DeleteMany(ctx, bson.D{}); err != nil || res.DeletedCount != 5 {
				t.Errorf("deleted %v, %v", res, err)
			}
		})
	}
}
