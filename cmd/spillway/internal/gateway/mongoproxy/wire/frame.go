package wire

import (
	"encoding/binary"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// A Frame is a message, or the beginning of one.
type Frame struct {
	mongowire.Header

	Head []byte // what is there
	Rest int    // how many bytes are still to come
}

// open returns what is in a frame: its operation code, the beginning of its payload, and how long that is
// in all. A payload that is compressed is expanded into scratch.
func (f Frame) open(scratch []byte) (code int32, payload []byte, total int, err error) {
	payload = f.Head[mongowire.HeaderSize:]
	if f.OpCode != mongowire.OpCompressed {
		return f.OpCode, payload, len(payload) + f.Rest, nil
	}
	z, ok := mongowire.ParseCompressed(payload)
	if !ok {
		return 0, nil, 0, errCompressed
	}
	payload, err = expand(scratch, z)
	return z.OpCode, payload, z.Size, err
}

// answer returns the flags of an answer and the beginning of its document, and whether the whole message
// is there.
func (f Frame) answer(scratch []byte) (flags uint32, doc []byte, whole bool, err error) {
	code, payload, total, err := f.open(scratch)
	whole = len(payload) == total
	switch {
	case err != nil:
		return 0, nil, false, err
	case code == mongowire.OpMsg && len(payload) > 9:
		return binary.LittleEndian.Uint32(payload), payload[5:], whole, nil
	case code == mongowire.OpReply && len(payload) > 24:
		return 0, payload[20:], whole, nil
	default:
		return 0, nil, false, errMessage // too short to have a document
	}
}

// Document returns the document of an answer that is complete, not compressed, and has a
// single document.
func Document(r Frame) (doc []byte, flags uint32, ok bool) {
	flags, doc, whole, err := r.answer(nil)
	if err != nil || !whole || r.OpCode == mongowire.OpMsg && r.Head[mongowire.HeaderSize+4] != 0 {
		return nil, 0, false
	}
	doc, _, err = mongowire.Document(doc)
	return doc, flags, err == nil
}
