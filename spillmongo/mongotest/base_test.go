package mongotest_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

var unacknowledged = &writeconcern.WriteConcern{W: 0}

// connect returns a client of d that is gone at the end of the test.
func connect(t testing.TB, d *mongotest.Deployment, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(append([]*options.ClientOptions{d.Options()}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client
}

// failCommand sets the fail point of n. data are pairs of a key and a value.
func failCommand(t testing.TB, n *mongotest.Node, mode any, data ...any) {
	t.Helper()
	d := bson.D{}
	for pair := range slices.Chunk(data, 2) {
		d = append(d, bson.E{Key: pair[0].(string), Value: pair[1]})
	}
	run(t, n, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: d}})
}

func times(n int) bson.D { return bson.D{{Key: "times", Value: n}} }

// run runs a command on n, which must succeed.
func run(t testing.TB, n *mongotest.Node, command bson.D) bson.Raw {
	t.Helper()
	reply, err := n.RunCommand("admin", command)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func one(res *mongo.SingleResult) (any, error) {
	var d bson.D
	err := res.Decode(&d)
	return d, err
}

// all reads a cursor to its end.
func all(cur *mongo.Cursor, err error) func(context.Context) ([]bson.D, error) {
	return func(ctx context.Context) (out []bson.D, _ error) {
		if err != nil {
			return nil, err
		}
		return out, cur.All(ctx, &out)
	}
}

func equal(got, want any) bool { return reflect.DeepEqual(got, want) }

// code is that of the error of a command; 0 if it is none.
func code(err error) int {
	var se mongo.ServerError
	if !errors.As(err, &se) || len(se.ErrorCodes()) == 0 {
		return 0
	}
	return se.ErrorCodes()[0]
}

// hasLabels reports whether err has the labels, and none of the others that matter.
func hasLabels(err error, want ...string) bool {
	var se mongo.ServerError
	if !errors.As(err, &se) {
		return false
	}
	for _, label := range []string{"SystemOverloadedError", "RetryableError", "RetryableWriteError", "TransientTransactionError", "ResumableChangeStreamError"} {
		if se.HasErrorLabel(label) != slices.Contains(want, label) {
			return false
		}
	}
	return true
}
