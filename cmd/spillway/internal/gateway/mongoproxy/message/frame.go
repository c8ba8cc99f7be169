// Package message reads messages of MongoDB as far as a proxy has to: the beginnings of
// commands and of answers, compressed ones too. What it reads shares the bytes of the message.
package message

import "github.com/seed90641741/spillway/internal/mongowire"

// A Frame is a message, or the beginning of one.
type Frame struct {
	mongowire.Header

	Head []byte // what is there
	Rest int    // how many bytes are still to come
}

// Document returns the document of an answer that is complete, not compressed, and has a
// single document.
func Document(r Frame) (doc []byte, flags uint32, ok bool) {
	const fields = mongowire.HeaderSize + 20
	if r.Rest > 0 {
		return nil, 0, false
	}
	switch {
	case r.OpCode == mongowire.OpReply && len(r.Head) > fields:
		doc = r.Head[fields:]
	case r.OpCode == mongowire.OpMsg && len(r.Head) > mongowire.HeaderSize+5 && r.Head[mongowire.HeaderSize+4] == 0:
		var c Command
		_ = c.message(r.Head[mongowire.HeaderSize:], len(r.Head)-mongowire.HeaderSize) // a document is wanted, below
		flags, doc = c.Flags, r.Head[mongowire.HeaderSize+5:]
	default:
		return nil, 0, false
	}
	doc, _, err := mongowire.Document(doc)
	return doc, flags, err == nil
}
