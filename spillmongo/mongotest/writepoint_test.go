package mongotest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// configure sets a fail point.
func configure(t *testing.T, n *mongotest.Node, name string, mode any, data bson.D) {
	t.Helper()
	if _, err := n.RunCommand("admin", bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}); err != nil {
		t.Fatal(err)
	}
}

// TestTransactionalWrite: a retryable write fails before it is applied, or loses its
// connection after that; sent again it is applied once.
func TestTransactionalWrite(t *testing.T) {
	for _, row := range []struct {
		data    bson.D
		applied int64 // without retries
	}{
		{nil, 1},
		{bson.D{{Key: "closeConnection", Value: false}}, 1},
		{bson.D{{Key: "failBeforeCommitExceptionCode", Value: 91}}, 0},
		{bson.D{{Key: "failBeforeCommitExceptionCode", Value: 91}, {Key: "closeConnection", Value: false}}, 0},
	} {
		d := mongotest.Start(t, mongotest.Config{})
		// The driver numbers writes only with retries, so the second attempt is taken away.
		client := connect(t, d, options.Client().SetRetryWrites(true).SetMaxAdaptiveRetries(0))
		coll := client.Database("test").Collection("things")
		for _, retry := range []bool{true, false} {
			if _, err := coll.DeleteMany(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			n := 2
			if retry {
				n = 1
			}
			configure(t, d.Node(0), "onPrimaryTransactionalWrite", times(n), row.data)
			_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
			if retry && err != nil {
				t.Errorf("%v: not retried: %v", row.data, err)
			}
			configure(t, d.Node(0), "onPrimaryTransactionalWrite", "off", nil)
			count, cerr := coll.CountDocuments(t.Context(), bson.D{})
			want := row.applied
			if retry {
				want = 1
			}
			if cerr != nil || count != want {
				t.Errorf("%v, retried %v: %d documents, want %d: %v %v", row.data, retry, count, want, err, cerr)
			}
		}
	}
}

// TestGetMoreLosesItsCursor: the error of a change stream has the label by which clients
// go on.
func TestGetMoreLosesItsCursor(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	client := connect(t, d, noRetries())
	coll := client.Database("test").Collection("things")
	for i := range 5 {
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	configure(t, d.Node(0), "failGetMoreAfterCursorCheckout", times(1), bson.D{{Key: "errorCode", Value: 91}})
	cur, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(2))
	if err != nil {
		t.Fatal(err)
	}
	var docs []bson.D
	if err := cur.All(t.Context(), &docs); code(err) != 91 || !hasLabels(err) {
		t.Errorf("%v", err)
	}
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(t.Context())
	configure(t, d.Node(0), "failGetMoreAfterCursorCheckout", times(1), bson.D{{Key: "errorCode", Value: 91}})
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 9}}); err != nil {
		t.Fatal(err)
	}
	if !stream.Next(t.Context()) {
		t.Errorf("not resumed: %v", stream.Err())
	}
	if n := d.Node(0).Stats().Commands["aggregate"]; n != 2 {
		t.Errorf("%d aggregations, want 2: the stream is opened again", n)
	}
	if _, err := d.Node(0).RunCommand("admin", bson.D{{Key: "configureFailPoint", Value: "other"}, {Key: "mode", Value: "off"}}); err == nil {
		t.Error("an unknown fail point is accepted")
	}
}
