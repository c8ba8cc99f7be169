package spillmongo

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// opMessage returns an OP_MSG with a body and sequences.
func opMessage(flags uint32, body any, sequences ...sequence) []byte {
	wm := make([]byte, headerSize, 256)
	binary.LittleEndian.PutUint32(wm[12:], opMsg)
	wm = binary.LittleEndian.AppendUint32(wm, flags)
	data, err := bson.Marshal(body)
	if err != nil {
		panic(err)
	}
	wm = append(append(wm, 0), data...)
	for _, s := range sequences {
		wm = append(wm, 1)
		wm = binary.LittleEndian.AppendUint32(wm, uint32(4+len(s.name)+1+len(s.docs)))
		wm = append(append(append(wm, s.name...), 0), s.docs...)
	}
	if flags&checksum != 0 {
		wm = append(wm, 1, 2, 3, 4)
	}
	binary.LittleEndian.PutUint32(wm, uint32(len(wm)))
	return wm
}

func document(t testing.TB, json string) bson.Raw {
	t.Helper()
	var d bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParseCommand(t *testing.T) {
	for json, want := range map[string]command{
		`{"find": "c", "$db": "d"}`:                        {name: "find", kind: spillway.KindRead, retryable: true},
		`{"getMore": 1, "$db": "d"}`:                       {name: "getMore", kind: spillway.KindRead},
		`{"ping": 1}`:                                      {name: "ping"},
		`{"insert": "c", "txnNumber": 1}`:                  {name: "insert", kind: spillway.KindWrite, retryable: true},
		`{"update": "c"}`:                                  {name: "update", kind: spillway.KindWrite},
		`{"aggregate": "c", "pipeline": [{"$match": {}}]}`: {name: "aggregate", kind: spillway.KindRead, retryable: true},
		`{"aggregate": "c", "pipeline": [{"$match": {}}, {"$merge": {}}]}`: {name: "aggregate", kind: spillway.KindWrite},
		`{"aggregate": "c", "pipeline": [{"$out": "x"}], "pipeline": 1}`:   {name: "aggregate", kind: spillway.KindWrite},
		`{"aggregate": "c", "pipeline": [1]}`:                              {name: "aggregate", kind: spillway.KindRead, retryable: true},
		`{"find": "c", "autocommit": false, "startTransaction": true}`:     {name: "find", kind: spillway.KindRead, transaction: true},
		`{"insert": "c", "autocommit": false, "txnNumber": 1}`:             {name: "insert", kind: spillway.KindWrite, transaction: true},
		`{"commitTransaction": 1, "autocommit": false, "txnNumber": 1}`:    {name: "commitTransaction", kind: spillway.KindWrite, transaction: true, ends: true, retryable: true},
		`{"abortTransaction": 1, "autocommit": false, "txnNumber": 1}`:     {name: "abortTransaction", kind: spillway.KindWrite, transaction: true, ends: true, retryable: true},
		`{}`: {},
	} {
		wm := opMessage(0, document(t, json))
		got, err := parseCommand(wm, false)
		if err != nil {
			t.Errorf("%s: %v", json, err)
		}
		if got.name != want.name || got.kind != want.kind || got.retryable != want.retryable ||
			got.transaction != want.transaction || got.ends != want.ends {
			t.Errorf("%s: %+v", json, got)
		}
		if name := string(commandName(wm)); name != want.name {
			t.Errorf("%s: the name is %q", json, name)
		}
		if got, _ = parseCommand(wm, true); got.kind != spillway.KindUnknown || got.retryable {
			t.Errorf("runCommand %s: %+v", json, got)
		}
	}
}

func TestParseMessageRejectsWhatIsMalformed(t *testing.T) {
	good := opMessage(0, bson.D{{Key: "ping", Value: 1}})
	change := func(at int, b ...byte) []byte {
		wm := bytes.Clone(good)
		copy(wm[at:], b)
		return wm
	}
	twice := append(bytes.Clone(good), good[20:]...)
	binary.LittleEndian.PutUint32(twice, uint32(len(twice)))
	for name, wm := range map[string][]byte{
		"nothing":             {},
		"another opcode":      change(12, 1),
		"a wrong length":      change(0, 1),
		"a section unknown":   change(20, 7),
		"a body cut short":    change(21, 0xff),
		"a body too short":    change(21, 4),
		"a broken element":    change(25, 0xee),
		"two bodies":          twice,
		"no body":             func() []byte { wm := bytes.Clone(good[:20]); wm[0] = 20; return wm }(),
		"a nameless sequence": opMessage(0, bson.D{}, sequence{docs: nil})[:0],
	} {
		if _, err := parseMessage(wm); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if clean(wm) {
			t.Errorf("%s: taken for a success", name)
		}
	}
}

func TestClean(t *testing.T) {
	for json, want := range map[string]bool{
		`{"ok": 1}`:                            true,
		`{"ok": 1.0, "cursor": {"id": 0}}`:     true,
		`{"ok": {"$numberLong": "1"}, "n": 1}`: true,
		`{"ok": 0}`:                            false,
		`{"ok": true}`:                         false, // the driver's to decide
		`{}`:                                   false,
		`{"ok": 1, "writeConcernError": {}}`:   false,
		`{"ok": 1, "errorLabels": ["x"]}`:      false,
		`{"ok": 1, "writeErrors": []}`:         true,
		`{"ok": 1, "x": {"writeConcernError": {}, "errorLabels": []}}`: true,
	} {
		if got := clean(opMessage(0, document(t, json))); got != want {
			t.Errorf("%s: %v", json, got)
		}
	}
}

func TestEventShowsSequences(t *testing.T) {
	docs := append(document(t, `{"a": 1}`), document(t, `{"a": 2}`)...)
	c, err := parseCommand(opMessage(checksum, bson.D{{Key: "insert", Value: "c"}}, sequence{"documents", docs}), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.command(), document(t, `{"insert": "c", "documents": [{"a": 1}, {"a": 2}]}`); !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMajority(t *testing.T) {
	for before, after := range map[string]string{
		`{"commitTransaction": 1, "$db": "admin"}`:                      `{"commitTransaction": 1, "$db": "admin", "writeConcern": {"w": "majority", "wtimeout": {"$numberLong": "10000"}}}`,
		`{"commitTransaction": 1, "writeConcern": {"w": 1, "j": true}}`: `{"commitTransaction": 1, "writeConcern": {"w": "majority", "j": true, "wtimeout": {"$numberLong": "10000"}}}`,
		`{"commitTransaction": 1, "writeConcern": {"wtimeout": 5}}`:     `{"commitTransaction": 1, "writeConcern": {"w": "majority", "wtimeout": 5}}`,
	} {
		c, err := parseCommand(opMessage(0, document(t, before)), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.majority(true); err != nil || !bytes.Equal(c.body, document(t, after)) {
			t.Errorf("%s became %v, %v; want %s", before, c.body, err, after)
		}
		if m, err := parseMessage(c.wire); err != nil || !bytes.Equal(m.body, c.body) {
			t.Errorf("%s: the message is %v, %v", before, m.body, err)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, row := range []struct {
		before string
		left   time.Duration
		want   int64
	}{
		{`{"find": "c", "maxTimeMS": {"$numberLong": "500"}}`, 200 * time.Millisecond, 200},
		{`{"find": "c", "maxTimeMS": {"$numberLong": "500"}}`, 199500 * time.Microsecond, 200},
		{`{"find": "c", "maxTimeMS": {"$numberLong": "100"}}`, 200 * time.Millisecond, 100},
		{`{"find": "c", "maxTimeMS": 500}`, 200 * time.Millisecond, 500}, // the caller's own, of runCommand
	} {
		c, err := parseCommand(opMessage(0, document(t, row.before)), false)
		if err != nil {
			t.Fatal(err)
		}
		c.shorten(row.left)
		m, err := parseMessage(c.wire)
		if got := m.body.Lookup("maxTimeMS").AsInt64(); err != nil || got != row.want {
			t.Errorf("%s with %v left: %d, want %d", row.before, row.left, got, row.want)
		}
	}
}

func TestHelloTrue(t *testing.T) {
	query := slices.Concat(make([]byte, headerSize+4), []byte("admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"),
		document(t, `{"isMaster": 1, "backpressure": "2", "client": {}}`))
	binary.LittleEndian.PutUint32(query[12:], opQuery)
	binary.LittleEndian.PutUint32(query, uint32(len(query)))
	for name, wm := range map[string][]byte{
		"OP_QUERY": query,
		"OP_MSG":   opMessage(0, document(t, `{"hello": 1, "backpressure": "2", "client": {}}`)),
	} {
		out := helloTrue(wm)
		_, doc := helloBody(out)
		if b, ok := doc.Lookup("backpressure").BooleanOK(); !b || !ok || doc.Lookup("client").Type != bson.TypeEmbeddedDocument {
			t.Errorf("%s: %v", name, doc)
		}
		if int(binary.LittleEndian.Uint32(out)) != len(out) || len(out) != len(wm)-5 {
			t.Errorf("%s: a length of %d in %d bytes", name, binary.LittleEndian.Uint32(out), len(out))
		}
		if again := helloTrue(out); !bytes.Equal(again, out) {
			t.Errorf("%s: not the same the second time", name)
		}
	}
	for _, json := range []string{`{"find": "c", "backpressure": "2"}`, `{"hello": 1}`, `{"hello": 1, "backpressure": true}`} {
		if wm := opMessage(0, document(t, json)); !bytes.Equal(helloTrue(wm), wm) {
			t.Errorf("%s was changed", json)
		}
	}
}

func TestWithLabel(t *testing.T) {
	for before, row := range map[string]struct {
		has   int
		after string
	}{
		`{"ok": 0, "errorLabels": ["a"]}`:           {1, `{"ok": 0, "errorLabels": ["x", "x", "a"]}`},
		`{"ok": 0, "errorLabels": ["a", "b"]}`:      {2, `{"ok": 0, "errorLabels": ["x", "a", "b"]}`},
		`{"ok": 0, "errorLabels": ["a", "b", "c"]}`: {3, `{"ok": 0, "errorLabels": ["x", "x", "a", "b", "c"]}`},
		`{"ok": 0}`: {0, `{"ok": 0, "errorLabels": ["x", "x", "x"]}`},
	} {
		m, err := parseMessage(withLabel(opMessage(0, document(t, before)), "x", row.has))
		if err != nil || !bytes.Equal(m.body, document(t, row.after)) {
			t.Errorf("%s became %v, %v", before, m.body, err)
		}
		if made := labelsOf(driverError(m.body)); cap(made) == len(made) {
			t.Errorf("the driver's slice of %d labels has no room for another", len(made))
		}
	}
}

func TestCleanAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	wm := opMessage(0, document(t, `{"cursor": {"id": 0, "firstBatch": []}, "ok": 1.0}`))
	if n := testing.AllocsPerRun(100, func() { clean(wm) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMessage: whatever comes in, nothing panics, and what is understood can be
// changed and understood again.
func FuzzMessage(f *testing.F) {
	f.Add(opMessage(0, bson.D{{Key: "ping", Value: 1}}))
	f.Add(opMessage(checksum, bson.D{{Key: "insert", Value: "c"}}, sequence{"documents", []byte{5, 0, 0, 0, 0}}))
	f.Add(opMessage(0, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$out", Value: 1}}}}, {Key: "maxTimeMS", Value: int64(9)}}))
	f.Add(opMessage(0, bson.D{{Key: "ok", Value: 0}, {Key: "errorLabels", Value: bson.A{"a"}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}}))
	f.Add(opMessage(0, bson.D{{Key: "hello", Value: 1}, {Key: "backpressure", Value: "2"}}))
	compressed := slices.Concat(opMessage(0, bson.D{})[:headerSize], []byte{0xdd, 7, 0, 0, 5, 0, 0, 0, 2, 1, 2, 3})
	binary.LittleEndian.PutUint32(compressed[12:], opCompressed)
	f.Add(compressed)
	f.Fuzz(func(t *testing.T, wm []byte) {
		before := bytes.Clone(wm)
		clean(wm)
		commandName(wm)
		requestID(wm)
		helloTrue(wm)
		if !bytes.Equal(before, wm) {
			t.Fatal("the message was changed in place")
		}
		if _, err := parseMessage(withLabel(wm, "x", 1)); (err == nil) != parses(wm) {
			t.Errorf("withLabel: %v", err)
		}
		if len(wm) > 24 && binary.LittleEndian.Uint32(wm[20:]) < 1<<16 { // as more takes only longer
			_, _ = plain(wm)
		}
		c, err := parseCommand(wm, false)
		if err != nil {
			return
		}
		if err := c.command().Validate(); err != nil && len(c.sequences) == 0 {
			t.Error(err)
		}
		c.number(7)
		c.shorten(time.Millisecond)
		if err := c.majority(true); err != nil {
			t.Error(err)
		}
		if requestID(c.wire) != 7 || !parses(c.wire) {
			t.Errorf("%x became %x", before, c.wire)
		}
	})
}

func parses(wm []byte) bool {
	_, err := parseMessage(wm)
	return err == nil
}
