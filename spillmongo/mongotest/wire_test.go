package mongotest_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

func dial(t *testing.T, n *mongotest.Node) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// read reads a message.
func read(t *testing.T, c net.Conn) []byte {
	t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, binary.LittleEndian.Uint32(head[:]))
	copy(data, head[:])
	if _, err := io.ReadFull(c, data[4:]); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestChecksum sends a message with a checksum, and gets one.
func TestChecksum(t *testing.T) {
	c := dial(t, mongotest.Start(t, mongotest.Config{}).Node(0))
	table := crc32.MakeTable(crc32.Castagnoli)
	m := message(t, bson.D{{Key: "ping", Value: 1}})
	m[16] = 1
	binary.LittleEndian.PutUint32(m, uint32(len(m)+4))
	if _, err := c.Write(binary.LittleEndian.AppendUint32(m, crc32.Checksum(m, table))); err != nil {
		t.Fatal(err)
	}
	reply := read(t, c)
	end := len(reply) - 4
	if reply[16] != 1 || binary.LittleEndian.Uint32(reply[end:]) != crc32.Checksum(reply[:end], table) {
		t.Errorf("the reply is %x", reply)
	}
}

// TestLegacyHello is the handshake of old clients.
func TestLegacyHello(t *testing.T) {
	c := dial(t, mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone}).Node(0))
	body, err := bson.Marshal(bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}})
	if err != nil {
		t.Fatal(err)
	}
	query := append([]byte("\x00\x00\x00\x00admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"), body...)
	if _, err := c.Write(frame(2004, query)); err != nil {
		t.Fatal(err)
	}
	reply := bson.Raw(read(t, c)[36:])
	if !reply.Lookup("ismaster").Boolean() || !reply.Lookup("helloOk").Boolean() {
		t.Errorf("got %v", reply)
	}
}

// TestMalformed sends what is no message. The node closes the connection, and serves
// others.
func TestMalformed(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	for _, data := range [][]byte{
		make([]byte, 16),
		[]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		frame(2013, make([]byte, 5)),
		frame(2013, append(make([]byte, 5), 5, 0, 0, 0, 0)),           // no command
		message(t, bson.D{})[:40],                                     // half a message, then the end
		frame(2012, []byte{0xdd, 7, 0, 0, 0xff, 0xff, 0xff, 0x7f, 2}), // two gigabytes, compressed
	} {
		c := dial(t, d.Node(0))
		if _, err := c.Write(data); err != nil {
			t.Fatal(err)
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.CloseWrite()
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || errors.Is(err, net.ErrClosed) || isTimeout(err) {
			t.Errorf("%x: got %d bytes, %v, want the end", data, n, err)
		}
	}
	if err := connect(t, d).Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// TestWhereSleeps has the one use of $where, over the other fields of its filter.
func TestWhereSleeps(t *testing.T) {
	coll := connect(t, mongotest.Start(t, mongotest.Config{})).Database("db").Collection("c")
	if _, err := coll.InsertMany(t.Context(), []any{id(1), id(2)}); err != nil {
		t.Fatal(err)
	}
	filter := append(id(2), bson.E{Key: "$where", Value: "function() { sleep(20); return true; }"})
	start := time.Now()
	got, err := all(coll.Find(t.Context(), filter))(t.Context())
	if len(got) != 1 || err != nil || time.Since(start) < 20*time.Millisecond {
		t.Errorf("got %v, %v, after %v", got, err, time.Since(start))
	}
	if _, err := coll.DeleteMany(t.Context(), filter); code(err) != 2 {
		t.Errorf("got %v, want code 2", err)
	}
}

// TestCompression lets the driver compress.
func TestCompression(t *testing.T) {
	for _, names := range [][]string{{"zlib"}, {"snappy", "zlib"}, {"zstd"}} {
		d := mongotest.Start(t, mongotest.Config{Nodes: 2})
		coll := connect(t, d, options.Client().SetCompressors(names)).Database("db").Collection("c")
		var docs []any
		for i := range 300 {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "text", Value: string(make([]byte, 1000))}})
		}
		if _, err := coll.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		got, err := all(coll.Find(t.Context(), bson.D{}))(t.Context())
		if len(got) != len(docs) || err != nil {
			t.Errorf("%v: %d documents, %v", names, len(got), err)
		}
	}
}

// TestLargeMessages moves more than one reply, or one buffer, holds.
func TestLargeMessages(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	coll := connect(t, d).Database("db").Collection("c")
	for i := range 3 {
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "b", Value: make([]byte, 9<<20)}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := all(coll.Find(t.Context(), bson.D{}))(t.Context())
	if len(got) != 3 || err != nil {
		t.Errorf("%d documents, %v", len(got), err)
	}
	if s := d.Node(0).Stats(); s.Commands["getMore"] != 2 {
		t.Errorf("%d getMores, want one for each document after the first", s.Commands["getMore"])
	}
}

func TestCursors(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	coll := connect(t, d).Database("db").Collection("c")
	if _, err := coll.InsertMany(t.Context(), []any{id(1), id(2), id(3)}); err != nil {
		t.Fatal(err)
	}
	cur, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1))
	if err != nil || !cur.Next(t.Context()) {
		t.Fatal(err)
	}
	cursor := cur.ID()
	if cursor == 0 {
		t.Error("the cursor is not open")
	}
	other := bson.D{{Key: "getMore", Value: cursor}, {Key: "collection", Value: "other"}}
	if err := coll.Database().RunCommand(t.Context(), other).Err(); code(err) != 43 {
		t.Errorf("got %v, want code 43", err)
	}
	if !cur.Next(t.Context()) {
		t.Errorf("a getMore of another collection has ended the cursor: %v", cur.Err())
	}
	if err := cur.Close(t.Context()); err != nil {
		t.Error(err)
	}
	more := bson.D{{Key: "getMore", Value: cursor}, {Key: "collection", Value: "c"}}
	if err := coll.Database().RunCommand(t.Context(), more).Err(); code(err) != 43 {
		t.Errorf("got %v, want code 43", err)
	}
	kill := run(t, d.Node(0), bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{cursor}}})
	if got, err := kill.Lookup("cursorsNotFound").Array().Values(); len(got) != 1 || err != nil {
		t.Errorf("got %v", kill)
	}
}

// TestUnknown is distinguished from what is known.
func TestUnknown(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	db := connect(t, d).Database("db")
	for _, test := range []struct {
		command bson.D
		code    int
	}{
		{bson.D{{Key: "frobnicate", Value: 1}}, 59},
		{bson.D{{Key: "find", Value: 1}}, 73},
		{bson.D{{Key: "find", Value: "c"}, {Key: "limit", Value: "x"}}, 14},
		{bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: "1"}}}}, 115},
		{bson.D{{Key: "find", Value: "c"}, {Key: "collation", Value: bson.D{{Key: "locale", Value: "de"}}}}, 115},
		{bson.D{{Key: "find", Value: "c"}, {Key: "tailable", Value: true}}, 2},
		{bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: -1}}, 2},
		{bson.D{{Key: "insert", Value: "c"}}, 72},
		{bson.D{{Key: "create", Value: "c"}, {Key: "capped", Value: true}}, 115},
		{bson.D{{Key: "bulkWrite", Value: 1}}, 13},
		{bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{}}, {Key: "cursor", Value: bson.D{}}}, 73},
		{bson.D{{Key: "findAndModify", Value: "c"}}, 9},
		{bson.D{{Key: "listIndexes", Value: "none"}}, 26},
		{bson.D{{Key: "dropIndexes", Value: "none"}, {Key: "index", Value: "*"}}, 26},
		{bson.D{{Key: "getParameter", Value: 1}}, 72},
		{bson.D{{Key: "setParameter", Value: 1}}, 72},
	} {
		if err := db.RunCommand(t.Context(), test.command).Err(); code(err) != test.code {
			t.Errorf("%v: got %v, want code %d", test.command, err, test.code)
		}
	}
	if s := d.Node(0).Stats(); s.Commands["unknown"] != 1 {
		t.Errorf("%d unknown commands, want 1", s.Commands["unknown"])
	}
}

// TestWriteErrors is what is wrong with single writes of a batch.
func TestWriteErrors(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	coll := connect(t, d).Database("db").Collection("c")
	docs := []any{id(1), id(1), id(2)}
	for _, ordered := range []bool{true, false} {
		_, err := coll.InsertMany(t.Context(), docs, options.InsertMany().SetOrdered(ordered))
		var bulk mongo.BulkWriteException
		if !errors.As(err, &bulk) || len(bulk.WriteErrors) != 1 || bulk.WriteErrors[0].Index != 1 || bulk.WriteErrors[0].Code != 11000 {
			t.Errorf("got %v", err)
		}
		want := int64(1)
		if !ordered {
			want = 2
		}
		if res, err := coll.DeleteMany(t.Context(), bson.D{}); err != nil || res.DeletedCount != want {
			t.Errorf("deleted %v, %v, want %d", res, err, want)
		}
	}
	filters := options.UpdateOne().SetArrayFilters([]any{bson.D{{Key: "x", Value: 1}}})
	if _, err := coll.UpdateOne(t.Context(), bson.D{}, set("a", 1), filters); code(err) != 115 {
		t.Errorf("got %v, want code 115", err)
	}
}

// TestChangeStreamResumes follows a stream past a failure, and from a given resume point.
func TestChangeStreamResumes(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	coll := connect(t, d).Database("db").Collection("c")
	match := mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}}
	stream, err := coll.Watch(t.Context(), match, options.ChangeStream().SetMaxAwaitTime(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(t.Context())
	if _, err := coll.InsertMany(t.Context(), []any{id(1), id(2)}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.DeleteMany(t.Context(), id(1)); err != nil {
		t.Fatal(err)
	}
	failCommand(t, d.Node(0), times(1), "failCommands", bson.A{"getMore"}, "closeConnection", true)
	for want := range 2 {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		if got := stream.Current.Lookup("documentKey", "_id").AsInt64(); got != int64(want+1) {
			t.Errorf("got %d, want %d", got, want+1)
		}
	}
	if stream.TryNext(t.Context()) {
		t.Errorf("got %v", stream.Current)
	}
}

// TestManyClients has more connections than processors, all at once.
func TestManyClients(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Sharded, Nodes: 2})
	client := connect(t, d)
	coll := client.Database("db").Collection("c")
	const workers, each = 16, 50
	errs := make(chan error, workers)
	for range workers {
		go func() {
			var err error
			for i := range each {
				if _, e := coll.UpdateOne(t.Context(), id(i), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}},
					options.UpdateOne().SetUpsert(true)); e != nil {
					err = errors.Join(err, e)
				}
				runtime.Gosched()
			}
			errs <- err
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "n", Value: workers}}); n != each || err != nil {
		t.Errorf("%d documents with %d updates, %v, want %d", n, workers, err, each)
	}
}
