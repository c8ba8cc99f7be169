package mongowire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"math"
)

// The kinds of BSON values.
const (
	KindDouble        = 0x01
	KindString        = 0x02
	KindDocument      = 0x03
	KindArray         = 0x04
	KindBinary        = 0x05
	kindUndefined     = 0x06
	kindObjectID      = 0x07
	KindBoolean       = 0x08
	kindDateTime      = 0x09
	kindNull          = 0x0a
	kindRegex         = 0x0b
	kindDBPointer     = 0x0c
	kindJavaScript    = 0x0d
	kindSymbol        = 0x0e
	kindCodeWithScope = 0x0f
	KindInt32         = 0x10
	kindTimestamp     = 0x11
	KindInt64         = 0x12
	kindDecimal128    = 0x13
	kindMinKey        = 0xff
	kindMaxKey        = 0x7f
)

const binaryOld = 2 // the subtype that has its length twice

// MaxDepth is how deep documents and arrays may be nested, as in a MongoDB server.
const MaxDepth = 180

var (
	errBSON = errors.New("malformed BSON")
	errDeep = errors.New("BSON is nested too deeply")
)

// Document returns the document at the start of data, which it checks to the last
// byte, and what follows it. The document shares its bytes with data.
func Document(data []byte) (doc, rest []byte, err error) {
	size, ok := Length(data)
	if !ok || size < 5 || size > len(data) {
		return nil, nil, errBSON
	}
	if err := check(data[:size], 1); err != nil {
		return nil, nil, err
	}
	return data[:size], data[size:], nil
}

// A Value is one of a document.
type Value struct {
	Kind byte
	Data []byte
}

// Elements returns the elements of a document or an array. Where that is malformed,
// or only its beginning is there, it ends early. A key is good until the next one.
func Elements(doc []byte) iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if len(doc) < 5 {
			return
		}
		for rest := doc[4:]; len(rest) > 0 && rest[0] != 0; {
			kind, key, value, tail, ok := Element(rest)
			if !ok || !yield(key, Value{kind, value}) {
				return
			}
			rest = tail
		}
	}
}

// Lookup returns the value of a field, the zero Value if the field is absent.
func Lookup(doc []byte, field string) Value {
	for key, v := range Elements(doc) {
		if string(key) == field {
			return v
		}
	}
	return Value{}
}

// Document returns the value as a document, nil if it is another.
func (v Value) Document() []byte { return v.as(KindDocument) }

// Array returns the value as an array, nil if it is none.
func (v Value) Array() []byte { return v.as(KindArray) }

func (v Value) as(kind byte) []byte {
	if v.Kind != kind {
		return nil
	}
	return v.Data
}

// Text returns the value as the bytes of a string, nil if it is none.
func (v Value) Text() []byte {
	if v.Kind != KindString || len(v.Data) < 5 {
		return nil
	}
	return v.Data[4 : len(v.Data)-1]
}

// Binary returns the value as binary data, nil if it is none.
func (v Value) Binary() []byte {
	if v.Kind != KindBinary || len(v.Data) < 5 {
		return nil
	}
	return v.Data[5:]
}

// Number returns the value as a number, if it is one.
func (v Value) Number() (n float64, ok bool) {
	le := binary.LittleEndian
	switch {
	case v.Kind == KindInt32 && len(v.Data) == 4:
		return float64(int32(le.Uint32(v.Data))), true
	case v.Kind == KindInt64 && len(v.Data) == 8:
		return float64(int64(le.Uint64(v.Data))), true
	case v.Kind == KindDouble && len(v.Data) == 8:
		return math.Float64frombits(le.Uint64(v.Data)), true
	default:
		return 0, false
	}
}

// True reports whether the value is what MongoDB takes for true in an ok or a flag:
// the boolean or a number that is not zero.
func (v Value) True() bool {
	if v.Kind == KindBoolean {
		return len(v.Data) == 1 && v.Data[0] != 0
	}
	n, ok := v.Number()
	return ok && n != 0
}

// check reports what is wrong with a document whose length is known to fit.
func check(doc []byte, depth int) error {
	if depth > MaxDepth {
		return errDeep
	}
	if size, _ := Length(doc); size != len(doc) || len(doc) < 5 || doc[len(doc)-1] != 0 {
		return errBSON
	}
	for rest := doc[4 : len(doc)-1]; len(rest) > 0; {
		kind, _, value, tail, ok := Element(rest)
		if !ok {
			return errBSON
		}
		if err := checkValue(kind, value, depth); err != nil {
			return err
		}
		rest = tail
	}
	return nil
}

func checkValue(kind byte, value []byte, depth int) error {
	switch kind {
	case KindDocument, KindArray:
		return check(value, depth+1)
	case kindCodeWithScope:
		size, ok := Length(value[4:]) // of the code
		if !ok || size < 1 || size > len(value)-13 || value[8+size-1] != 0 {
			return errBSON
		}
		return check(value[8+size:], depth+1)
	case KindString, kindJavaScript, kindSymbol:
		if value[len(value)-1] != 0 {
			return errBSON
		}
	case KindBinary:
		if inner, ok := Length(value[5:]); value[4] == binaryOld && (!ok || inner != len(value)-9) {
			return errBSON
		}
	case KindBoolean:
		if value[0] > 1 {
			return errBSON
		}
	default:
	}
	return nil
}

// Element splits off the element at the start of data, which must not be empty. Of
// its value it checks nothing but the length.
func Element(data []byte) (kind byte, key, value, rest []byte, ok bool) {
	end := bytes.IndexByte(data[1:], 0)
	if end < 0 {
		return 0, nil, nil, nil, false
	}
	kind, key, rest = data[0], data[1:1+end], data[2+end:]
	size, ok := valueSize(kind, rest)
	if !ok || size > len(rest) {
		return 0, nil, nil, nil, false
	}
	return kind, key, rest[:size:size], rest[size:], true
}

// valueSize returns how long the value at the start of data says it is. The answer may
// be more than there is.
func valueSize(kind byte, data []byte) (int, bool) {
	switch kind {
	case kindNull, kindUndefined, kindMinKey, kindMaxKey:
		return 0, true
	case KindBoolean:
		return 1, true
	case KindInt32:
		return 4, true
	case KindDouble, kindDateTime, kindTimestamp, KindInt64:
		return 8, true
	case kindObjectID:
		return 12, true
	case kindDecimal128:
		return 16, true
	case KindString, kindJavaScript, kindSymbol:
		return sized(data, 1, 4)
	case KindBinary:
		return sized(data, 0, 5)
	case kindDBPointer:
		return sized(data, 1, 16)
	case KindDocument, KindArray:
		return sized(data, 5, 0)
	case kindCodeWithScope:
		return sized(data, 14, 0)
	case kindRegex:
		return regexSize(data)
	default:
		return 0, false
	}
}

// sized is the size of a value that begins with a length of at least least, which
// counts all but extra bytes of it.
func sized(data []byte, least, extra int) (int, bool) {
	n, ok := Length(data)
	return n + extra, ok && n >= least && n <= math.MaxInt32-extra // more is too much for some ints
}

func regexSize(data []byte) (int, bool) {
	pattern := bytes.IndexByte(data, 0)
	if pattern < 0 {
		return 0, false
	}
	options := bytes.IndexByte(data[pattern+1:], 0)
	return pattern + options + 2, options >= 0
}
