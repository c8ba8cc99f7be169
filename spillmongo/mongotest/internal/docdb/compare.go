package docdb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// class is the place of a type in the order of all values; numbers of different
// types are of one class, and so are strings and symbols.
func class(t bson.Type) int {
	switch t {
	case bson.TypeMinKey:
		return 0
	case bson.TypeUndefined, bson.TypeNull, 0:
		return 1
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return 2
	case bson.TypeString, bson.TypeSymbol:
		return 3
	case bson.TypeEmbeddedDocument:
		return 4
	case bson.TypeArray:
		return 5
	case bson.TypeBinary:
		return 6
	case bson.TypeObjectID:
		return 7
	case bson.TypeBoolean:
		return 8
	case bson.TypeDateTime:
		return 9
	case bson.TypeTimestamp:
		return 10
	case bson.TypeRegex:
		return 11
	case bson.TypeMaxKey:
		return 13
	default:
		return 12
	}
}

// compare orders two values as MongoDB does, apart from collations.
func compare(a, b bson.RawValue) int {
	if c := cmp.Compare(class(a.Type), class(b.Type)); c != 0 {
		return c
	}
	switch class(a.Type) {
	case 0, 1, 13:
		return 0
	case 2:
		return compareNumbers(a, b)
	case 3:
		return cmp.Compare(text(a), text(b))
	case 4, 5:
		return compareDocuments(a.Value, b.Value)
	case 9:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a.Value)), int64(binary.LittleEndian.Uint64(b.Value)))
	case 10:
		return cmp.Compare(binary.LittleEndian.Uint64(a.Value), binary.LittleEndian.Uint64(b.Value))
	default:
		return bytes.Compare(a.Value, b.Value)
	}
}

// text returns a string or a symbol.
func text(v bson.RawValue) string {
	if s, ok := v.StringValueOK(); ok {
		return s
	}
	s, _ := v.SymbolOK()
	return s
}

func compareNumbers(a, b bson.RawValue) int {
	x, xok := integer(a)
	y, yok := integer(b)
	if xok && yok {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(float(a), float(b))
}

func integer(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		return int64(v.Int32()), true
	case bson.TypeInt64:
		return v.Int64(), true
	default:
		return 0, false
	}
}

func float(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeDouble:
		return v.Double()
	case bson.TypeDecimal128:
		f, err := strconv.ParseFloat(v.Decimal128().String(), 64)
		if err != nil && !math.IsInf(f, 0) {
			return math.NaN()
		}
		return f
	default:
		i, _ := integer(v)
		return float64(i)
	}
}

func compareDocuments(a, b []byte) int {
	type element struct {
		key   string
		value bson.RawValue
	}
	list := func(doc []byte) (out []element) {
		for k, v := range wire.Elements(doc) {
			out = append(out, element{k, v})
		}
		return out
	}
	x, y := list(a), list(b)
	for i := range min(len(x), len(y)) {
		c := cmp.Or(
			cmp.Compare(class(x[i].value.Type), class(y[i].value.Type)),
			cmp.Compare(x[i].key, y[i].key),
			compare(x[i].value, y[i].value),
		)
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// key is a string that is equal for equal values: numbers of different types with
// the same value are equal.
func key(v bson.RawValue) string { return string(appendKey(nil, v)) }

// appendKey writes each part with its length before it, so that no two values write
// the same.
func appendKey(b []byte, v bson.RawValue) []byte {
	b = append(b, byte(class(v.Type)))
	switch class(v.Type) {
	case 0, 1, 13:
		return b
	case 2:
		return appendPart(b, numberText(v))
	case 3:
		return appendPart(b, text(v))
	case 4, 5:
		for k, v := range wire.Elements(v.Value) {
			b = appendKey(appendPart(append(b, 1), k), v)
		}
		return append(b, 0)
	default:
		return appendPart(b, string(v.Value))
	}
}

func appendPart(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func numberText(v bson.RawValue) string {
	if i, ok := integer(v); ok {
		return strconv.FormatInt(i, 10)
	}
	f := float(v)
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
