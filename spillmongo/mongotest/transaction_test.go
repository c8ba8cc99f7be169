package mongotest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// transaction returns a collection with one document, and a session in a transaction.
func transaction(t *testing.T, d *mongotest.Deployment) (*mongo.Collection, *mongo.Session, context.Context) {
	t.Helper()
	client := connect(t, d, options.Client().SetMaxAdaptiveRetries(0))
	coll := client.Database("db").Collection("c")
	if _, err := coll.InsertOne(t.Context(), doc(1, 11)); err != nil {
		t.Fatal(err)
	}
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.EndSession(context.Background()) })
	if err := s.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	return coll, s, mongo.NewSessionContext(t.Context(), s)
}

func countAll(t *testing.T, ctx context.Context, coll *mongo.Collection) int64 {
	t.Helper()
	n, err := coll.CountDocuments(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var transactional = []mongotest.Config{
	{Topology: mongotest.ReplicaSet},
	{Topology: mongotest.Sharded, Nodes: 2},
	{Topology: mongotest.LoadBalanced, Nodes: 2},
}

func TestTransaction(t *testing.T) {
	for _, c := range transactional {
		for _, commit := range []bool{true, false} {
			coll, s, in := transaction(t, mongotest.Start(t, c))
			if _, err := coll.InsertMany(in, []any{doc(2, 22), doc(3, 33)}); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.DeleteOne(in, id(1)); err != nil {
				t.Fatal(err)
			}
			if inside, outside := countAll(t, in, coll), countAll(t, t.Context(), coll); inside != 2 || outside != 1 {
				t.Errorf("%d documents inside, %d outside, want 2 and 1", inside, outside)
			}
			want := int64(1)
			if commit {
				if err := errors.Join(s.CommitTransaction(t.Context()), s.CommitTransaction(t.Context())); err != nil {
					t.Error(err)
				}
				want = 2
			} else if err := s.AbortTransaction(t.Context()); err != nil {
				t.Error(err)
			}
			if n := countAll(t, t.Context(), coll); n != want {
				t.Errorf("committed is %v: %d documents, want %d", commit, n, want)
			}
		}
	}
}

// TestTransactionAfterRejection rejects the first command, which starts the transaction
// when it is sent again.
func TestTransactionAfterRejection(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	client := connect(t, d, options.Client().SetMaxAdaptiveRetries(1))
	coll := client.Database("db").Collection("c")
	failCommand(t, d.Node(0), times(1), "failCommands", bson.A{"insert"}, "errorCode", 462, "errorLabels", both)
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.EndSession(t.Context())
	_, err = s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) { return coll.InsertOne(ctx, doc(1, 1)) })
	if err != nil {
		t.Fatal(err)
	}
	if n := countAll(t, t.Context(), coll); n != 1 {
		t.Errorf("%d documents, want 1", n)
	}
	if got := d.Node(0).Stats().Commands["insert"]; got != 2 {
		t.Errorf("%d inserts, want 2", got)
	}
}

func TestTransactionEndsAtError(t *testing.T) {
	coll, s, in := transaction(t, mongotest.Start(t, mongotest.Config{}))
	if _, err := coll.InsertOne(in, doc(1, 0)); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("got %v, want a duplicate key", err)
	}
	_, err := coll.InsertOne(in, doc(2, 0))
	if code(err) != 251 || !hasLabels(err, "TransientTransactionError") {
		t.Errorf("got %v, want code 251", err)
	}
	if err := s.CommitTransaction(t.Context()); code(err) != 251 {
		t.Errorf("got %v, want code 251", err)
	}
}

// TestLabelsOfAFailedCommit: a server has the same label for the end of a transaction
// that may be tried again as for what is in it, but not for a lost primary.
func TestLabelsOfAFailedCommit(t *testing.T) {
	for failed, want := range map[int][]string{
		24: {"TransientTransactionError"}, 112: {"TransientTransactionError"}, 251: {"TransientTransactionError"},
		10107: {"RetryableWriteError"}, 50: nil,
	} {
		d := mongotest.Start(t, mongotest.Config{})
		coll, s, in := transaction(t, d)
		if _, err := coll.InsertOne(in, doc(2, 0)); err != nil {
			t.Fatal(err)
		}
		failCommand(t, d.Node(0), "alwaysOn", "failCommands", bson.A{"commitTransaction"}, "errorCode", failed)
		if err := s.CommitTransaction(t.Context()); code(err) != failed || !hasLabels(err, want...) {
			t.Errorf("code %d: got %v, want the labels %v", failed, err, want)
		}
	}
}

func TestTransactionsConflict(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	coll, _, in := transaction(t, d)
	if _, err := coll.UpdateOne(in, id(1), set("x", 1)); err != nil {
		t.Fatal(err)
	}
	client := connect(t, d)
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.EndSession(t.Context())
	if err := s.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	_, err = client.Database("db").Collection("c").UpdateOne(mongo.NewSessionContext(t.Context(), s), id(1), set("x", 2))
	if code(err) != 112 || !hasLabels(err, "TransientTransactionError") {
		t.Errorf("got %v, want code 112", err)
	}
}

// numbered is a command of the session s with the number n.
func numbered(s byte, n int64, command bson.D, more ...bson.E) bson.D {
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: append(make([]byte, 15), s)}}}
	return append(append(command, bson.E{Key: "lsid", Value: lsid}, bson.E{Key: "txnNumber", Value: n}), more...)
}

func insertX() bson.D {
	return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "x", Value: 1}}}}}
}

// TestRetryableWrites sends writes again, with the same number and with others.
func TestRetryableWrites(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	n := d.Node(0)
	find := bson.D{{Key: "count", Value: "c"}}
	start := []bson.E{{Key: "autocommit", Value: false}, {Key: "startTransaction", Value: true}}
	going := start[:1]
	for i, step := range []struct {
		command bson.D
		code    string // part of the error
		count   int64  // of documents after it
	}{
		{numbered(1, 1, insertX()), "", 1},
		{numbered(1, 1, insertX()), "", 1},
		{numbered(1, 2, insertX()), "", 2},
		{numbered(1, 1, insertX()), "TransactionTooOld", 2},
		{numbered(2, 1, insertX()), "", 3},
		{numbered(1, 3, insertX(), going...), "NoSuchTransaction", 3},
		{numbered(1, 3, insertX(), start...), "", 3},
		{numbered(1, 3, insertX(), start...), "Location50911", 3},
		{numbered(1, 3, insertX(), going...), "", 3},
		{numbered(1, 3, insertX()), "InvalidOptions", 3},
		{numbered(1, 3, bson.D{{Key: "commitTransaction", Value: 1}}, going...), "", 5},
		{numbered(1, 3, bson.D{{Key: "commitTransaction", Value: 1}}, going...), "", 5},
		{numbered(1, 3, insertX(), going...), "TransactionCommitted", 5},
		{numbered(1, 3, bson.D{{Key: "abortTransaction", Value: 1}}, going...), "NoSuchTransaction", 5},
		{numbered(1, 4, insertX(), start...), "", 5},
		{numbered(1, 4, bson.D{{Key: "abortTransaction", Value: 1}}, going...), "", 5},
		{numbered(1, 4, bson.D{{Key: "commitTransaction", Value: 1}}, going...), "NoSuchTransaction", 5},
		{numbered(1, 5, insertX(), start...), "", 5},
		{numbered(1, 6, insertX()), "", 6}, // a new number aborts what was in progress
		{append(insertX(), bson.E{Key: "txnNumber", Value: int64(1)}), "InvalidOptions", 6},
		{bson.D{{Key: "commitTransaction", Value: 1}}, "NoSuchTransaction", 6},
		{bson.D{{Key: "killAllSessions", Value: bson.A{}}}, "", 6},
		{numbered(1, 6, insertX()), "", 7}, // of a session that was forgotten
	} {
		_, err := n.RunCommand("admin", step.command)
		if (err == nil) != (step.code == "") || err != nil && !strings.Contains(err.Error(), step.code) {
			t.Errorf("step %d: got %v, want %s", i, err, step.code)
		}
		if got := run(t, n, find).Lookup("n").AsInt64(); got != step.count {
			t.Errorf("step %d: %d documents, want %d", i, got, step.count)
		}
	}
	if s := n.Stats(); s.Replayed != 1 {
		t.Errorf("%d writes replayed, want 1", s.Replayed)
	}
}

func TestStandaloneHasNoTransactions(t *testing.T) {
	n := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone}).Node(0)
	if _, err := n.RunCommand("admin", numbered(1, 1, insertX())); err == nil || !strings.Contains(err.Error(), "IllegalOperation") {
		t.Errorf("got %v, want IllegalOperation", err)
	}
}
