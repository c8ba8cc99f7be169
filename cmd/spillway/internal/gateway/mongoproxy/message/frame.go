// Package message reads messages of MongoDB as far as a proxy has to: the beginnings of
// commands and of answers, compressed ones too. What it reads shares the bytes of the message.
package message

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

// answer returns the flags of an answer and the beginning of its document, if it is long enough
// to have one.
func answer(code int32, payload []byte) (flags uint32, doc []byte, ok bool) {
	switch {
	case code == mongowire.OpMsg && len(payload) > 9:
		return binary.LittleEndian.Uint32(payload), payload[5:], true
	case code == mongowire.OpReply && len(payload) > 24:
		return 0, payload[20:], true
	default:
		return 0, nil, false
	}
}

// Document returns the document of an answer that is complete, not compressed, and has a
// single document.
func Document(r Frame) (doc []byte, flags uint32, ok bool) {
	payload := r.Head[mongowire.HeaderSize:]
	flags, doc, ok = answer(r.OpCode, payload)
	if !ok || r.Rest > 0 || r.OpCode == mongowire.OpMsg && payload[4] != 0 {
		return nil, 0, false
	}
	doc, _, err := mongowire.Document(doc)
	return doc, flags, err == nil
}
