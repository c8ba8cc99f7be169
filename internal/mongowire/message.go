package mongowire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Limits of a MongoDB server, which it announces in its hello.
const (
	MaxMessageSize  = 48_000_000
	MaxDocumentSize = 16 << 20
	MaxBatch        = 100_000
)

// The operation codes that are still in use.
const (
	OpReply      = 1
	OpQuery      = 2004
	OpCompressed = 2012
	OpMsg        = 2013
)

// The flags of an OP_MSG.
const (
	ChecksumPresent = 1 << 0
	MoreToCome      = 1 << 1
	ExhaustAllowed  = 1 << 16
	RequiredFlags   = 0xffff // those that a receiver must know
)

// The compressors of an OP_COMPRESSED.
const (
	CompressorNone   = 0
	CompressorSnappy = 1
	CompressorZlib   = 2
	CompressorZstd   = 3
)

// HeaderSize is how long a [Header] is in bytes.
const HeaderSize = 16

// A Header is what each message begins with.
type Header struct {
	Length     int32 // of the message, itself included
	RequestID  int32
	ResponseTo int32
	OpCode     int32
}

// ParseHeader reads the header at the start of data, which must be HeaderSize bytes
// long or longer.
func ParseHeader(data []byte) Header {
	le := binary.LittleEndian
	return Header{
		Length:     int32(le.Uint32(data)),
		RequestID:  int32(le.Uint32(data[4:])),
		ResponseTo: int32(le.Uint32(data[8:])),
		OpCode:     int32(le.Uint32(data[12:])),
	}
}

// Fits reports whether the length is one that a message can have.
func (h Header) Fits() bool { return h.Length >= HeaderSize && h.Length <= MaxMessageSize }

// Append appends the header to dst.
func (h Header) Append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(h.Length))
	dst = le.AppendUint32(dst, uint32(h.RequestID))
	dst = le.AppendUint32(dst, uint32(h.ResponseTo))
	return le.AppendUint32(dst, uint32(h.OpCode))
}

// Length reads the length at the start of data. It is never more than an int32 holds.
func Length(data []byte) (int, bool) {
	if len(data) < 4 {
		return 0, false
	}
	return int(int32(binary.LittleEndian.Uint32(data))), true
}

// CutString splits off the C string at the start of data, without its zero.
func CutString(data []byte) (s, rest []byte, ok bool) {
	s, rest, ok = bytes.Cut(data, []byte{0})
	return s, rest, ok
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is that of a message, but for the four bytes at its end where it goes.
func Checksum(message []byte) uint32 { return crc32.Checksum(message, castagnoli) }

// AppendMsg appends an OP_MSG with one document to dst, with a checksum if flags say
// so.
func AppendMsg(dst []byte, id, responseTo int32, flags uint32, doc []byte) []byte {
	start := len(dst)
	size := HeaderSize + 4 + 1 + len(doc)
	if flags&ChecksumPresent != 0 {
		size += 4
	}
	dst = Header{int32(size), id, responseTo, OpMsg}.Append(dst)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = append(dst, 0)
	dst = append(dst, doc...)
	if flags&ChecksumPresent != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, Checksum(dst[start:]))
	}
	return dst
}

// AppendReply appends an OP_REPLY with one document to dst.
func AppendReply(dst []byte, id, responseTo int32, doc []byte) []byte {
	const fields = 20
	const awaitCapable = 8
	dst = Header{int32(HeaderSize + fields + len(doc)), id, responseTo, OpReply}.Append(dst)
	dst = binary.LittleEndian.AppendUint32(dst, awaitCapable)
	dst = append(dst, make([]byte, 12)...) // no cursor, from the start
	dst = binary.LittleEndian.AppendUint32(dst, 1)
	return append(dst, doc...)
}

// Compressed is an OP_COMPRESSED without its header.
type Compressed struct {
	OpCode     int32 // of what is inside
	Size       int   // that it says it will have, which is possible
	Compressor byte
	Data       []byte // may be no more than the beginning
}

// ParseCompressed reads what follows the header of an OP_COMPRESSED.
func ParseCompressed(data []byte) (c Compressed, ok bool) {
	const fields = 9
	if len(data) < fields {
		return c, false
	}
	c.OpCode = int32(binary.LittleEndian.Uint32(data))
	c.Size, _ = Length(data[4:]) // there are as many bytes
	c.Compressor, c.Data = data[8], data[fields:]
	return c, c.Size >= 0 && c.Size <= MaxMessageSize-HeaderSize
}

// ParseQuery reads what follows the header of an OP_QUERY up to its document, from which
// there may be no more than the beginning. The name is that of a collection, with its
// database.
func ParseQuery(data []byte) (name, doc []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	name, rest, ok := CutString(data[4:])
	if !ok || len(rest) < 8 {
		return nil, nil, false
	}
	return name, rest[8:], true
}
