package mongotest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// noRetries leaves every failure to the test.
func noRetries() *options.ClientOptions {
	return options.Client().SetRetryReads(false).SetRetryWrites(false).SetMaxAdaptiveRetries(0)
}

var both = []string{"SystemOverloadedError", "RetryableError"}

func TestFailCommandModes(t *testing.T) {
	for _, test := range []struct {
		mode any
		want string // of six pings: x fails
	}{
		{"off", "......"},
		{"alwaysOn", "xxxxxx"},
		{times(2), "xx...."},
		{times(0), "......"},
		{bson.D{{Key: "skip", Value: 4}}, "....xx"},
		{bson.D{{Key: "activationProbability", Value: 0.0}}, "......"},
		{bson.D{{Key: "activationProbability", Value: 1.0}}, "xxxxxx"},
	} {
		t.Run(fmt.Sprint(test.mode), func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Config{})
			client := connect(t, d, noRetries())
			failCommand(t, d.Node(0), test.mode, "failCommands", bson.A{"ping"}, "errorCode", 2, "errorLabels", both)
			got := ""
			for range len(test.want) {
				err := client.Ping(t.Context(), nil)
				switch {
				case err == nil:
					got += "."
				case code(err) == 2 && hasLabels(err, both...):
					got += "x"
				default:
					t.Fatal(err)
				}
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if s := d.Node(0).Stats(); s.Commands["ping"] != 6 || s.Failed != uint64(count(test.want, 'x')) {
				t.Errorf("counted %d pings and %d failures", s.Commands["ping"], s.Failed)
			}
		})
	}
}

func count(s string, c rune) (n int) {
	for _, r := range s {
		if r == c {
			n++
		}
	}
	return n
}

// TestFailCommandLabels compares the labels that a server gives its errors with the labels
// that the fail point sets instead.
func TestFailCommandLabels(t *testing.T) {
	insert := func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.InsertOne(ctx, bson.D{})
		return err
	}
	find := func(ctx context.Context, c *mongo.Collection) error { return c.FindOne(ctx, bson.D{}).Err() }
	for _, test := range []struct {
		name   string
		call   func(context.Context, *mongo.Collection) error
		code   int
		labels any // nil for none given
		want   []string
	}{
		{"retryable write", insert, 91, nil, []string{"RetryableWriteError"}},
		{"write that is not", insert, 2, nil, nil},
		{"read", find, 91, nil, nil},
		{"none in their place", insert, 91, bson.A{}, nil},
		{"others in their place", insert, 91, bson.A{"RetryableError"}, []string{"RetryableError"}},
		{"request rejected", find, 462, nil, both},
		{"interrupted", find, 473, nil, []string{"SystemOverloadedError"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Config{})
			client := connect(t, d, options.Client().SetRetryReads(false).SetMaxAdaptiveRetries(0))
			data := []any{"failCommands", bson.A{"insert", "find"}, "errorCode", test.code}
			if test.labels != nil {
				data = append(data, "errorLabels", test.labels)
			}
			failCommand(t, d.Node(0), "alwaysOn", data...)
			err := test.call(t.Context(), client.Database("db").Collection("c"))
			if code(err) != test.code || !hasLabels(err, test.want...) {
				t.Errorf("got %#v, want code %d with %v", err, test.code, test.want)
			}
		})
	}
}

func TestFailCommandClosesConnection(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	client := connect(t, d, noRetries())
	failCommand(t, d.Node(0), times(1), "failCommands", bson.A{"find"}, "closeConnection", true, "errorCode", 2)
	err := client.Database("db").Collection("c").FindOne(t.Context(), bson.D{}).Err()
	if !mongo.IsNetworkError(err) {
		t.Errorf("got %v, want a network error", err)
	}
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestFailCommandBlocks(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	client := connect(t, d, noRetries())
	failCommand(t, d.Node(0), "alwaysOn", "failCommands", bson.A{"ping"}, "blockConnection", true, "blockTimeMS", 3600_000)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Ping(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestFailCommandByApplication(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	one, other := connect(t, d, noRetries().SetAppName("one")), connect(t, d, noRetries().SetAppName("other"))
	failCommand(t, d.Node(0), "alwaysOn", "failCommands", bson.A{"ping"}, "errorCode", 2, "appName", "one", "failInternalCommands", true)
	if err := one.Ping(t.Context(), nil); code(err) != 2 {
		t.Errorf("got %v, want code 2", err)
	}
	if err := other.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestFailCommandByNamespace(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	db := connect(t, d, noRetries()).Database("db")
	failCommand(t, d.Node(0), "alwaysOn", "failCommands", bson.A{"find"}, "errorCode", 2, "namespace", "db.bad")
	if err := db.Collection("bad").FindOne(t.Context(), bson.D{}).Err(); code(err) != 2 {
		t.Errorf("got %v, want code 2", err)
	}
	if err := db.Collection("good").FindOne(t.Context(), bson.D{}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Error(err)
	}
}

func TestFailCommandWriteConcernError(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	coll := connect(t, d, noRetries()).Database("db").Collection("c")
	failCommand(t, d.Node(0), times(1), "failCommands", bson.A{"find", "insert"},
		"writeConcernError", bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "too few"}})
	if err := coll.FindOne(t.Context(), bson.D{}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Error(err) // a read has no write concern
	}
	if _, err := coll.InsertOne(t.Context(), bson.D{}); code(err) != 64 {
		t.Errorf("got %v, want code 64", err)
	}
	if n, err := coll.EstimatedDocumentCount(t.Context()); n != 1 || err != nil {
		t.Errorf("%d documents, %v; the write was done all the same", n, err)
	}
}

// TestFailPointOverTheWire uses the fail point as programs for a MongoDB server do.
func TestFailPointOverTheWire(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone})
	client := connect(t, d, noRetries())
	admin := client.Database("admin")
	for i := range 2 {
		var reply struct{ Count int }
		err := admin.RunCommand(t.Context(), bson.D{
			{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: times(1)},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"ping", "configureFailPoint"}}, {Key: "errorCode", Value: 7}}},
		}).Decode(&reply)
		if err != nil || reply.Count != i {
			t.Errorf("count is %d, %v, want %d", reply.Count, err, i)
		}
		if err := client.Ping(t.Context(), nil); code(err) != 7 {
			t.Errorf("got %v, want code 7", err)
		}
	}
}

func TestFailPointRejects(t *testing.T) {
	n := mongotest.Start(t, mongotest.Config{}).Node(0)
	for _, test := range []struct {
		db      string
		command bson.D
	}{
		{"admin", bson.D{{Key: "configureFailPoint", Value: "another"}, {Key: "mode", Value: "off"}}},
		{"db", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}},
		{"admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "sometimes"}}},
		{"admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: times(-1)}}},
		{"admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"},
			{Key: "data", Value: bson.D{{Key: "blockTimeMS", Value: -1}}}}},
		{"admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: 1}}}}},
	} {
		if _, err := n.RunCommand(test.db, test.command); err == nil {
			t.Errorf("%v was accepted", test.command)
		}
	}
}
