package mongowire

import (
	"encoding/binary"
	"math"
	"strconv"
)

// A Builder makes a document, field by field. The zero Builder is ready for use, and
// makes one only.
type Builder struct{ doc []byte }

// head begins a field.
func (b *Builder) head(kind byte, key string) {
	if b.doc == nil {
		b.doc = make([]byte, 4, 256)
	}
	b.doc = append(b.doc, kind)
	b.doc = append(b.doc, key...)
	b.doc = append(b.doc, 0)
}

// Value adds a field with a value that is there already.
func (b *Builder) Value(key string, v Value) {
	b.head(v.Kind, key)
	b.doc = append(b.doc, v.Data...)
}

// Text adds a field with a string.
func (b *Builder) Text(key, text string) {
	b.head(KindString, key)
	b.doc = binary.LittleEndian.AppendUint32(b.doc, uint32(len(text)+1))
	b.doc = append(b.doc, text...)
	b.doc = append(b.doc, 0)
}

// Double adds a field with a number.
func (b *Builder) Double(key string, n float64) {
	b.head(KindDouble, key)
	b.doc = binary.LittleEndian.AppendUint64(b.doc, math.Float64bits(n))
}

// Int adds a field with a number.
func (b *Builder) Int(key string, n int32) {
	b.head(KindInt32, key)
	b.doc = binary.LittleEndian.AppendUint32(b.doc, uint32(n))
}

// Bool adds a field with a truth value.
func (b *Builder) Bool(key string, is bool) {
	b.head(KindBoolean, key)
	var v byte
	if is {
		v = 1
	}
	b.doc = append(b.doc, v)
}

// ObjectID adds a field with the name of an object.
func (b *Builder) ObjectID(key string, id [12]byte) {
	b.head(kindObjectID, key)
	b.doc = append(b.doc, id[:]...)
}

// Array adds a field with a list of strings.
func (b *Builder) Array(key string, texts ...string) {
	var list Builder
	for i, text := range texts {
		list.Text(strconv.Itoa(i), text)
	}
	b.Value(key, Value{KindArray, list.Document()})
}

// Document returns the document.
func (b *Builder) Document() []byte {
	if b.doc == nil {
		b.doc = make([]byte, 4)
	}
	b.doc = append(b.doc, 0)
	binary.LittleEndian.PutUint32(b.doc, uint32(len(b.doc)))
	return b.doc
}
