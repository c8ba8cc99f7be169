package wire

import (
	"bufio"
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// FuzzParse feeds a stream of messages. What is accepted must be whole: its documents
// are read by package bson without complaint, and it is no larger than what came, or
// than what a compressed message may be.
func FuzzParse(f *testing.F) {
	doc := ping(f)
	plain := frame(mongowire.OpMsg, u32(0), body(doc), sequence("documents", doc, doc))
	small, err := compress(bytes.Clone(plain), mongowire.CompressorZlib)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{
		plain, small, sum(frame(mongowire.OpMsg, u32(1), body(doc))), plain[:20], nil,
		frame(mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), doc),
		append(bytes.Clone(plain), plain...), frame(mongowire.OpMsg, u32(0), body(nested(MaxDepth+1))),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			m, err := r.Next()
			if err != nil {
				return
			}
			docs := []bson.Raw{m.Body}
			for _, s := range m.Sequences {
				docs = append(docs, s.Docs...)
			}
			total := 0
			for _, d := range docs {
				total += len(d)
				if err := d.Validate(); err != nil {
					t.Fatalf("accepted %x: %v", []byte(d), err)
				}
			}
			if total > len(data) && !m.Compressed || total > MaxMessageSize {
				t.Fatalf("%d bytes of documents from %d", total, len(data))
			}
		}
	})
}

// FuzzDocument compares the check with that of package bson: what is accepted here
// must be accepted there.
func FuzzDocument(f *testing.F) {
	f.Add(ping(f))
	f.Add(nested(3))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, rest, err := Document(data)
		if err != nil {
			return
		}
		if len(doc)+len(rest) != len(data) {
			t.Fatalf("%d and %d bytes of %d", len(doc), len(rest), len(data))
		}
		if err := doc.Validate(); err != nil {
			t.Fatalf("accepted %x: %v", data, err)
		}
		var d bson.D
		if err := bson.Unmarshal(doc, &d); err != nil {
			t.Fatalf("accepted %x: %v", data, err)
		}
	})
}
