package spillmongo

import (
	"bytes"
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The opcodes of the wire protocol that are met here.
const (
	opQuery      = 2004 // the first hello of a connection
	opCompressed = 2012
	opMsg        = 2013

	headerSize = 16 // length, request ID, response to, opcode
	moreToCome = 1 << 1
	checksum   = 1 << 0
)

// A message is an OP_MSG, taken apart. Its parts are views of the bytes that were
// parsed.
type message struct {
	flags     uint32
	body      bson.Raw // the document that holds the command or the answer
	bodyStart int      // where it is
	sequences []sequence
}

// A sequence is documents that belong into the body as an array.
type sequence struct {
	name string
	docs []byte
}

var errMessage = errors.New("spillmongo: malformed OP_MSG")

func opcode(wm []byte) uint32 {
	if len(wm) < headerSize {
		return 0
	}
	return binary.LittleEndian.Uint32(wm[12:])
}

func requestID(wm []byte) int64 {
	if len(wm) < headerSize {
		return 0
	}
	return int64(int32(binary.LittleEndian.Uint32(wm[4:])))
}

// parseMessage takes wm apart, which must be an OP_MSG with one body.
func parseMessage(wm []byte) (m message, err error) {
	if opcode(wm) != opMsg || len(wm) < headerSize+4 || int(binary.LittleEndian.Uint32(wm)) != len(wm) {
		return m, errMessage
	}
	m.flags = binary.LittleEndian.Uint32(wm[headerSize:])
	end := len(wm)
	if m.flags&checksum != 0 {
		end -= 4
	}
	at := headerSize + 4
	for at < end {
		kind := wm[at]
		at++
		section, ok := sized(wm[at:end])
		if !ok {
			return m, errMessage
		}
		switch kind {
		case 0:
			if m.body != nil {
				return m, errMessage
			}
			m.body, m.bodyStart = bson.Raw(section), at
		case 1:
			name, docs, ok := bytes.Cut(section[4:], []byte{0})
			if !ok {
				return m, errMessage
			}
			m.sequences = append(m.sequences, sequence{string(name), docs})
		default:
			return m, errMessage
		}
		at += len(section)
	}
	if m.body == nil || m.body.Validate() != nil {
		return m, errMessage
	}
	return m, nil
}

// sized returns the beginning of b that has the length which b begins with.
func sized(b []byte) ([]byte, bool) {
	if len(b) < 5 {
		return nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if n < 5 || uint64(n) > uint64(len(b)) {
		return nil, false
	}
	return b[:n:n], true
}

// commandName returns the name of the command in wm without looking at the rest,
// or nil if wm is no OP_MSG that begins with its body.
func commandName(wm []byte) []byte {
	const name = headerSize + 4 + 1 + 4 + 1 // flags, kind, length of the document, type
	if opcode(wm) != opMsg || len(wm) <= name || wm[headerSize+4] != 0 {
		return nil
	}
	end := bytes.IndexByte(wm[name:], 0)
	if end < 0 {
		return nil
	}
	return wm[name : name+end]
}

// command returns the body with the sequences as arrays in it, as events show it.
func (m *message) command() bson.Raw {
	if len(m.sequences) == 0 {
		return bytes.Clone(m.body)
	}
	doc := newDocument(len(m.body))
	doc = append(doc, m.body[4:len(m.body)-1]...)
	for _, s := range m.sequences {
		array := bson.A{}
		for rest := s.docs; len(rest) > 0; {
			one, ok := sized(rest)
			if !ok {
				break
			}
			array = append(array, bson.Raw(one))
			rest = rest[len(one):]
		}
		doc = appendValue(doc, s.name, array)
	}
	return endDocument(doc)
}

// withBody returns wm with another body.
func (m *message) withBody(wm []byte, body bson.Raw) []byte {
	out := make([]byte, 0, len(wm)-len(m.body)+len(body))
	out = append(out, wm[:m.bodyStart]...)
	out = append(out, body...)
	out = append(out, wm[m.bodyStart+len(m.body):]...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return out
}

// newDocument begins a document with room for size bytes.
func newDocument(size int) []byte { return make([]byte, 4, size+64) }

// endDocument ends a document that newDocument began.
func endDocument(doc []byte) bson.Raw {
	doc = append(doc, 0)
	binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
	return doc
}

// appendValue adds an element to a document that is not ended. What cannot be
// written as BSON is left out.
func appendValue(doc []byte, key string, value any) []byte {
	kind, data, err := bson.MarshalValue(value)
	if err != nil {
		return doc
	}
	doc = append(append(doc, byte(kind)), key...)
	return append(append(doc, 0), data...)
}
