package mongowire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

func u32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// sample has a field of each kind that a Builder makes.
func sample() []byte {
	var inner, b Builder
	inner.Int("x", -1)
	b.Text("find", "orders")
	b.Double("ok", 1.5)
	b.Int("n", -7)
	b.Bool("yes", true)
	b.Bool("no", false)
	b.ObjectID("id", [12]byte{1})
	b.Array("labels", "a", "", "", "", "", "", "", "", "", "", "", "b")
	b.Value("inner", Value{KindDocument, inner.Document()})
	b.Value("bin", Value{KindBinary, append(u32(2), 0, 'h', 'i')})
	b.Value("long", Value{KindInt64, binary.LittleEndian.AppendUint64(nil, 1<<40)})
	return b.Document()
}

func TestBuilderAndLookup(t *testing.T) {
	doc, rest, err := Document(append(sample(), 9))
	if err != nil || !bytes.Equal(rest, []byte{9}) {
		t.Fatal(err, rest)
	}
	var names []string
	for key := range Elements(doc) {
		names = append(names, string(key))
	}
	if got := strings.Join(names, " "); got != "find ok n yes no id labels inner bin long" {
		t.Errorf("fields %s", got)
	}
	for field, want := range map[string]float64{"ok": 1.5, "n": -7, "long": 1 << 40} {
		if n, ok := Lookup(doc, field).Number(); n != want || !ok {
			t.Errorf("%s is %v, %v", field, n, ok)
		}
	}
	for field, want := range map[string]bool{"ok": true, "yes": true, "no": false, "find": false, "missing": false} {
		if Lookup(doc, field).True() != want {
			t.Errorf("%s is not %v", field, want)
		}
	}
	if string(Lookup(doc, "find").Text()) != "orders" || Lookup(doc, "n").Text() != nil ||
		string(Lookup(doc, "bin").Binary()) != "hi" || Lookup(doc, "find").Binary() != nil ||
		string(Lookup(Lookup(doc, "labels").Array(), "11").Text()) != "b" || Lookup(doc, "inner").Array() != nil ||
		Lookup(doc, "labels").Document() != nil || Lookup(Lookup(doc, "inner").Document(), "x").Kind != KindInt32 {
		t.Errorf("%x", doc)
	}
	var none Builder
	if !bytes.Equal(none.Document(), []byte{5, 0, 0, 0, 0}) {
		t.Error("a document without fields is not empty")
	}
}

func TestMessages(t *testing.T) {
	doc := sample()
	m := AppendMsg([]byte("before"), 1, 2, ChecksumPresent, doc)[6:]
	if h := ParseHeader(m); h != (Header{int32(len(m)), 1, 2, OpMsg}) || !h.Fits() || !bytes.Equal(h.Append(nil), m[:HeaderSize]) {
		t.Errorf("%+v", h)
	}
	if sum := m[len(m)-4:]; !bytes.Equal(sum, u32(Checksum(m[:len(m)-4]))) {
		t.Error("wrong checksum")
	}
	r := AppendReply(nil, 1, 2, doc)
	if h := ParseHeader(r); h != (Header{int32(len(r)), 1, 2, OpReply}) || !bytes.Equal(r[HeaderSize+20:], doc) {
		t.Errorf("%+v", h)
	}
	for _, n := range []int32{math.MinInt32, -1, 0, HeaderSize - 1, MaxMessageSize + 1, math.MaxInt32} {
		if (Header{Length: n}).Fits() {
			t.Errorf("%d fits", n)
		}
	}
	c, ok := ParseCompressed(append(append(u32(OpMsg), u32(9)...), 2, 'x'))
	if !ok || c.OpCode != OpMsg || c.Size != 9 || c.Compressor != CompressorZlib || string(c.Data) != "x" {
		t.Errorf("%+v", c)
	}
	if _, ok := ParseCompressed(append(append(u32(OpMsg), u32(1<<31)...), 2)); ok {
		t.Error("a negative size")
	}
	name, rest, ok := ParseQuery(append([]byte("\x04\x00\x00\x00a.$cmd\x00\x00\x00\x00\x00\x01\x00\x00\x00"), doc...))
	if string(name) != "a.$cmd" || !bytes.Equal(rest, doc) || !ok {
		t.Errorf("%s %x %v", name, rest, ok)
	}
}

func TestMalformed(t *testing.T) {
	nested := []byte{5, 0, 0, 0, 0}
	for range MaxDepth {
		var b Builder
		b.Value("a", Value{KindDocument, nested})
		nested = b.Document()
	}
	field := func(kind byte, value ...byte) []byte {
		var b Builder
		b.Value("f", Value{kind, value})
		return b.Document()
	}
	for name, doc := range map[string][]byte{
		"nothing":               nil,
		"too long":              {6, 0, 0, 0, 0},
		"too short":             {4, 0, 0, 0, 0},
		"negative":              {0xff, 0xff, 0xff, 0xff, 0},
		"no end":                {5, 0, 0, 0, 1},
		"too deep":              nested,
		"a key without an end":  {8, 0, 0, 0, 1, 'a', 'b', 0},
		"an unknown kind":       field(0x42),
		"a number cut short":    field(KindInt64, 1, 2),
		"a string too long":     field(KindString, 200, 0, 0, 0, 0),
		"a string of 2 GiB":     field(KindString, 0xff, 0xff, 0xff, 0x7f, 0),
		"binary of 2 GiB":       field(KindBinary, 0xff, 0xff, 0xff, 0x7f, 0),
		"a string without zero": field(KindString, 1, 0, 0, 0, 'x'),
		"neither true nor not":  field(KindBoolean, 2),
		"old binary":            field(KindBinary, 5, 0, 0, 0, 2, 9, 0, 0, 0, 'x'),
		"a regex without end":   field(kindRegex, 'a', 'b'),
		"code":                  field(kindCodeWithScope, 14, 0, 0, 0, 9, 0, 0, 0, 0, 5, 0, 0, 0, 0),
	} {
		if got, _, err := Document(doc); err == nil {
			t.Errorf("%s: got %x", name, got)
		}
	}
}

// FuzzDocument: what is good is good to its end however it is read, and what is read
// of the rest lies inside of it.
func FuzzDocument(f *testing.F) {
	f.Add(sample())
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		for key, v := range Elements(data) {
			total += 2 + len(key) + len(v.Data)
			_, _, _, _ = v.Text(), v.Binary(), v.True(), v.Document()
			_, _ = v.Number()
		}
		if total > len(data) {
			t.Errorf("%d bytes of elements in %d", total, len(data))
		}
		doc, rest, err := Document(data)
		if err == nil && (len(doc)+len(rest) != len(data) || total != len(doc)-5) {
			t.Errorf("%d bytes of elements in a document of %d, %d behind", total, len(doc), len(rest))
		}
		if len(data) >= HeaderSize && !bytes.Equal(ParseHeader(data).Append(nil), data[:HeaderSize]) {
			t.Error("a header became another one")
		}
		_, _ = ParseCompressed(data)
		_, _, _ = ParseQuery(data)
	})
}

func TestLooksAllocateNothing(t *testing.T) {
	doc := sample()
	if n := testing.AllocsPerRun(100, func() { _ = Lookup(doc, "long") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
