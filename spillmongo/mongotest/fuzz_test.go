package mongotest_test

import (
	"encoding/binary"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// message is a command as an OP_MSG.
func message(t testing.TB, command bson.D) []byte {
	t.Helper()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "admin"}))
	if err != nil {
		t.Fatal(err)
	}
	return frame(2013, append(make([]byte, 5), body...))
}

// frame puts a header before the rest of a message.
func frame(code uint32, rest []byte) []byte {
	le := binary.LittleEndian
	head := le.AppendUint32(nil, uint32(16+len(rest)))
	head = le.AppendUint64(head, 7) // its number, and that of no other
	return append(le.AppendUint32(head, code), rest...)
}

// FuzzServe is a client that sends what it likes and then leaves. The node must not
// panic, and nothing may be left of the connection.
func FuzzServe(f *testing.F) {
	number := func(command bson.D) bson.D {
		return numbered(1, 1, command, bson.E{Key: "autocommit", Value: false}, bson.E{Key: "startTransaction", Value: true})
	}
	some := bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: set("a", 1)}, {Key: "limit", Value: 0}}}
	pipeline := bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}
	for _, command := range []bson.D{
		{{Key: "hello", Value: 1}, {Key: "compression", Value: bson.A{"zlib"}}, {Key: "topologyVersion", Value: bson.D{}}, {Key: "maxAwaitTimeMS", Value: 1}},
		insertX(),
		number(insertX()),
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "batchSize", Value: 1}},
		{{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "c"}},
		{{Key: "update", Value: "c"}, {Key: "updates", Value: some}},
		{{Key: "delete", Value: "c"}, {Key: "deletes", Value: some}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "findAndModify", Value: "c"}, {Key: "update", Value: set("a", 1)}, {Key: "upsert", Value: true}},
		{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: bson.A{bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{}}}}},
			{Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: "a.b"}}}}},
		{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D{{Key: "failAllCommands", Value: true}}}},
		{{Key: "setParameter", Value: 1}, {Key: "ingressRequestRateLimiterEnabled", Value: true}},
		{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "name", Value: "x"}, {Key: "key", Value: bson.D{{Key: "x", Value: 1}}}}}}},
		{{Key: "listCollections", Value: 1}, {Key: "filter", Value: bson.D{}}},
		{{Key: "endSessions", Value: bson.A{bson.D{{Key: "id", Value: 1}}}}},
		{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{int64(1)}}},
	} {
		f.Add(message(f, command))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := mongotest.New(mongotest.Config{Pipes: true, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		c, err := d.Options().Dialer.DialContext(t.Context(), "tcp", d.Node(0).Addr())
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, c)
		c.Write(data)
		c.Close()
		d.Close()
		if s := d.Node(0).Stats(); s.Connections != 0 {
			t.Fatalf("%d connections are left", s.Connections)
		}
	})
}
