package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// marshal is a document as BSON.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// frame puts a header before the rest of a message.
func frame(code uint32, parts ...[]byte) []byte {
	rest := bytes.Join(parts, nil)
	le := binary.LittleEndian
	head := le.AppendUint32(nil, uint32(headerSize+len(rest)))
	head = le.AppendUint32(head, 7)
	head = le.AppendUint32(head, 0)
	return append(le.AppendUint32(head, code), rest...)
}

func u32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

func body(doc []byte) []byte { return append([]byte{0}, doc...) }

// sequence is a section of kind 1.
func sequence(id string, docs ...[]byte) []byte {
	rest := append([]byte(id+"\x00"), bytes.Join(docs, nil)...)
	return append([]byte{1}, append(u32(uint32(4+len(rest))), rest...)...)
}

// sum appends the checksum.
func sum(message []byte) []byte {
	binary.LittleEndian.PutUint32(message, uint32(len(message)+4))
	return binary.LittleEndian.AppendUint32(message, mongowire.Checksum(message))
}

// compressed wraps a message.
func compressed(message []byte, size uint32, id byte, payload []byte) []byte {
	return frame(mongowire.OpCompressed, message[12:16], u32(size), []byte{id}, payload)
}

func ping(t testing.TB) []byte {
	return marshal(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
}

func nested(depth int) []byte {
	doc := []byte{5, 0, 0, 0, 0}
	for range depth - 1 {
		doc = append(append(append(u32(uint32(len(doc)+8)), byte(bson.TypeEmbeddedDocument), 'a', 0), doc...), 0)
	}
	return doc
}

func TestParse(t *testing.T) {
	doc, two := ping(t), marshal(t, bson.D{{Key: "b", Value: 2}})
	plain := frame(mongowire.OpMsg, u32(0), body(doc))
	small, err := compress(bytes.Clone(plain), mongowire.CompressorZlib)
	if err != nil {
		t.Fatal(err)
	}
	wrong := sum(frame(mongowire.OpMsg, u32(1), body(doc)))
	wrong[len(wrong)-1]++
	long := bytes.Clone(plain)
	long[0]++
	for _, test := range []struct {
		name string
		data []byte
		want string // part of the error, or the sequences
	}{
		{"body", plain, ""},
		{"checksum", sum(frame(mongowire.OpMsg, u32(mongowire.ChecksumPresent), body(doc))), ""},
		{"sequence", frame(mongowire.OpMsg, u32(0), body(doc), sequence("documents", two, two)), "documents 2"},
		{"sequence first", frame(mongowire.OpMsg, u32(0), sequence("ops", two), sequence("nsInfo"), body(doc)), "ops 1 nsInfo 0"},
		{"zlib", small, ""},
		{"no compression", compressed(plain, uint32(len(plain)-headerSize), mongowire.CompressorNone, plain[headerSize:]), ""},
		{"query", frame(mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), doc), ""},
		{"depth", frame(mongowire.OpMsg, u32(0), body(nested(MaxDepth))), ""},

		{"empty", nil, "another length"},
		{"length that lies", long, "another length"},
		{"unknown code", frame(2001, doc), "code 2001"},
		{"no flags", frame(mongowire.OpMsg), "without flags"},
		{"unknown flags", frame(mongowire.OpMsg, u32(1<<5), body(doc)), "flags 0x20"},
		{"no body", frame(mongowire.OpMsg, u32(0)), "without a body"},
		{"two bodies", frame(mongowire.OpMsg, u32(0), body(doc), body(doc)), "kind 0"},
		{"kind 2", frame(mongowire.OpMsg, u32(0), []byte{2}, doc), "kind 2"},
		{"cut short", frame(mongowire.OpMsg, u32(0), body(doc[:len(doc)-1])), "BSON"},
		{"too much", frame(mongowire.OpMsg, u32(0), body(doc), []byte{9}), "kind 9"},
		{"wrong checksum", wrong, "checksum"},
		{"no room for checksum", frame(mongowire.OpMsg, u32(mongowire.ChecksumPresent)), "without its checksum"},
		{"too deep", frame(mongowire.OpMsg, u32(0), body(nested(MaxDepth+1))), "deeply"},
		{"sequence cut short", frame(mongowire.OpMsg, u32(0), body(doc), []byte{1, 0}), "wrong length"},
		{"sequence too long", frame(mongowire.OpMsg, u32(0), body(doc), []byte{1}, u32(1000), []byte("a\x00")), "wrong length"},
		{"sequence without end of name", frame(mongowire.OpMsg, u32(0), body(doc), []byte{1}, u32(5), []byte("a")), "a name"},
		{"same sequence twice", frame(mongowire.OpMsg, u32(0), body(doc), sequence("a"), sequence("a")), "a name"},
		{"broken document in a sequence", frame(mongowire.OpMsg, u32(0), body(doc), sequence("a", two[:3])), "BSON"},
		{"unknown compressor", compressed(plain, 1, 4, []byte{0}), "compressor 4"},
		{"snappy of another length", compressed(plain, 1, mongowire.CompressorSnappy, []byte{2, 4, 0, 0}), "another length"},
		{"no snappy", compressed(plain, 100, mongowire.CompressorSnappy, []byte{100, 0xff}), "corrupt"},
		{"no zstd", compressed(plain, 10, mongowire.CompressorZstd, []byte("nonsense")), "magic"},
		{"compressed in short", frame(mongowire.OpCompressed, u32(mongowire.OpMsg)), "cut short"},
		{"compressed to too much", compressed(plain, MaxMessageSize, mongowire.CompressorZlib, nil), "48000000 bytes"},
		{"compressed to less", compressed(plain, 1, mongowire.CompressorZlib, small[headerSize+9:]), "says that it has 1"},
		{"compressed to more", compressed(plain, 1000, mongowire.CompressorZlib, small[headerSize+9:]), "says that it has 1000"},
		{"no zlib", compressed(plain, 10, mongowire.CompressorZlib, []byte("nonsense")), "zlib"},
		{"compressed twice", compressed(frame(mongowire.OpCompressed), uint32(len(small)-headerSize), mongowire.CompressorNone, small[headerSize:]), "code 2012"},
		{"query without flags", frame(mongowire.OpQuery), "cut short"},
		{"query cut short", frame(mongowire.OpQuery, u32(0), []byte("admin.$cmd")), "cut short"},
		{"query for documents", frame(mongowire.OpQuery, u32(0), []byte("db.coll\x00"), u32(0), u32(1), doc), "not a command"},
		{"query without a document", frame(mongowire.OpQuery, u32(0), []byte("admin.$cmd\x00"), u32(0), u32(1)), "BSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Parse(test.data)
			got := ""
			if err != nil {
				if got = err.Error(); test.want == "" || !strings.Contains(got, test.want) {
					t.Errorf("got the error %q, want %q", got, test.want)
				}
				return
			}
			for _, s := range m.Sequences {
				got += s.ID + " " + string(rune('0'+len(s.Docs))) + " "
			}
			if strings.TrimSpace(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.name != "depth" && m.Body.Lookup("ping").AsInt64() != 1 {
				t.Errorf("the body is %v", m.Body)
			}
		})
	}
}

// TestDocument has each type of value, whole and broken.
func TestDocument(t *testing.T) {
	whole := marshal(t, bson.D{
		{Key: "double", Value: 1.5}, {Key: "string", Value: "s"}, {Key: "document", Value: bson.D{{Key: "a", Value: 1}}},
		{Key: "array", Value: bson.A{1, "2"}}, {Key: "binary", Value: bson.Binary{Data: []byte{1, 2}}},
		{Key: "old binary", Value: bson.Binary{Subtype: bson.TypeBinaryBinaryOld, Data: []byte{1, 2}}},
		{Key: "undefined", Value: bson.Undefined{}}, {Key: "id", Value: bson.NewObjectID()}, {Key: "bool", Value: true},
		{Key: "date", Value: bson.DateTime(1)}, {Key: "null", Value: nil}, {Key: "regex", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "pointer", Value: bson.DBPointer{DB: "db"}}, {Key: "code", Value: bson.JavaScript("f()")}, {Key: "symbol", Value: bson.Symbol("s")},
		{Key: "scope", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "a", Value: 1}}}},
		{Key: "int32", Value: int32(1)}, {Key: "timestamp", Value: bson.Timestamp{T: 1}}, {Key: "int64", Value: int64(1)},
		{Key: "decimal", Value: bson.NewDecimal128(1, 1)}, {Key: "min", Value: bson.MinKey{}}, {Key: "max", Value: bson.MaxKey{}},
	})
	doc, rest, err := Document(append(bytes.Clone(whole), 1, 2))
	if err != nil || len(rest) != 2 {
		t.Fatal(err)
	}
	keys, want := 0, 22
	for k, v := range Elements(doc) {
		if got := doc.Lookup(k); got.Type != v.Type || !bytes.Equal(got.Value, v.Value) {
			t.Errorf("%s is %v, want %v", k, v, got)
		}
		keys++
	}
	if keys != want {
		t.Errorf("%d elements, want %d", keys, want)
	}
	for i := range whole {
		if _, _, err := Document(whole[:i]); err == nil {
			t.Errorf("the first %d bytes were accepted", i)
		}
	}
	for name, data := range map[string]string{
		"length below 5":        "04000000",
		"negative length":       "ffffffff00",
		"no end":                "0500000001",
		"unknown type":          "08000000206100 00",
		"key without end":       "0800000010616161",
		"int32 cut short":       "0a0000001061000100 00",
		"string of no bytes":    "0c0000000261000000000000",
		"string without end":    "0f000000026100020000006161 00 0000"[:0] + "0e00000002610002000000616100",
		"string longer than it": "0e000000026100ff000000616100",
		"bool of 2":             "0900000008610002 00",
		"binary too long":       "0e00000005610005000000000100",
		"old binary that lies":  "1100000005610004000000020900000000",
		"array that lies":       "0d000000046100040000000000"[:0] + "0d00000004610004000000 0000",
		"regex without end":     "0a0000000b6100616100",
		"scope that lies":       "170000000f61000f000000ff00000000000500000000 00"[:0] + "1a0000000f610012000000ff000000000500000000000000 0000",
	} {
		raw, err := hex.DecodeString(strings.ReplaceAll(data, " ", ""))
		if err != nil {
			t.Fatal(name, err)
		}
		if size, _ := mongowire.Length(raw); size != len(raw) && size > 4 {
			t.Errorf("%s: the row has %d bytes and says %d", name, len(raw), size)
		}
		if _, _, err := Document(raw); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestReader reads two messages, and one that stops in the middle.
func TestReader(t *testing.T) {
	m := frame(mongowire.OpMsg, u32(0), body(ping(t)))
	for cut := range m {
		r := NewReader(bufio.NewReader(bytes.NewReader(bytes.Join([][]byte{m, m, m[:cut]}, nil))))
		for range 2 {
			if got, err := r.Next(); err != nil || got.RequestID != 7 {
				t.Fatal(got, err)
			}
		}
		want := io.ErrUnexpectedEOF
		if cut == 0 {
			want = io.EOF
		}
		if _, err := r.Next(); !errors.Is(err, want) {
			t.Errorf("cut at %d: got %v, want %v", cut, err, want)
		}
	}
	for _, size := range []uint32{0, 15, MaxMessageSize + 1, 1 << 31} {
		if _, err := NewReader(bufio.NewReader(bytes.NewReader(u32(size)))).Next(); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("length %d: got %v", size, err)
		}
	}
}

// TestReaderBelievesBytesOnly claims 48 MB and sends a thousand bytes.
func TestReaderBelievesBytesOnly(t *testing.T) {
	data := append(u32(MaxMessageSize), make([]byte, 1000)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewReader(bufio.NewReader(bytes.NewReader(data))).Next(); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("took %d bytes", took)
	}
}

// TestReply reads back what a client would, but for the direction.
func TestReply(t *testing.T) {
	doc := marshal(t, bson.D{{Key: "ok", Value: 1.0}})
	for _, m := range []*Message{{}, {Checksum: true}, {Compressed: true}, {Compressed: true, Checksum: true}} {
		for _, more := range []bool{false, true} {
			data, err := Reply{RequestID: 3, ResponseTo: 7, More: more}.Append([]byte("before"), m, doc)
			if err != nil {
				t.Fatal(err)
			}
			if binary.LittleEndian.Uint32(data[6+8:]) != 7 {
				t.Error("wrong responseTo")
			}
			got, err := Parse(data[6:])
			if err != nil {
				t.Fatalf("%+v: %v", m, err)
			}
			if got.RequestID != 3 || got.NoReply != more || got.Compressed != m.Compressed || !bytes.Equal(got.Body, doc) {
				t.Errorf("got %+v", got)
			}
			if got.Checksum != (m.Checksum && !m.Compressed) {
				t.Errorf("checksum is %v for %+v", got.Checksum, m)
			}
		}
	}
	data, err := Reply{ResponseTo: 7}.Append(nil, &Message{Legacy: true}, doc)
	if err != nil || len(data) != headerSize+20+len(doc) || !bytes.Equal(data[headerSize+20:], doc) {
		t.Errorf("OP_REPLY is %x, %v", data, err)
	}
}

func TestDocuments(t *testing.T) {
	two := bson.D{{Key: "b", Value: 2}}
	inside := marshal(t, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{two, two}}, {Key: "bad", Value: bson.A{1}}})
	m, err := Parse(frame(mongowire.OpMsg, u32(0), body(inside), sequence("updates", marshal(t, two))))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"documents": 2, "updates": 1, "none": 0} {
		if docs, err := m.Documents(id); len(docs) != want || err != nil {
			t.Errorf("%s: %d documents, %v, want %d", id, len(docs), err, want)
		}
	}
	if _, err := m.Documents("bad"); err == nil {
		t.Error("a number is no document")
	}
}
