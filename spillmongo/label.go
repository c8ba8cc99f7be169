package spillmongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway"
)

// The field of a command that carries its label, as {comment: {criticality:
// "SHEDDABLE"}}. Servers pass a comment on to shards, logs and the profiler.
const (
	commentKey     = "comment"
	criticalityKey = "criticality"
)

// helloNames and commands that authenticate take no comment of all server versions.
func takesLabel(name string) bool {
	return !exempt[name] && !secret[name] && !helloNames[name] && name != ""
}

// label puts the criticality of ctx into the message, if it has one and the
// application's own comment leaves place for it.
func (c *conn) label(ctx context.Context) {
	class, ok := spillway.LookupCriticality(ctx)
	if !ok || !class.Valid() {
		return
	}
	wm, err := plain(c.wm)
	if err != nil {
		return
	}
	m, err := parseMessage(wm)
	if err != nil || m.flags&checksum != 0 || !takesLabel(firstKey(m.body)) {
		return
	}
	body := labelled(m.body, class)
	if body == nil {
		return
	}
	wm = m.withBody(wm, body)
	if opcode(c.wm) == opCompressed {
		if wm, err = c.face.CompressWireMessage(wm, nil); err != nil {
			return
		}
	}
	c.wm = wm
}

// labelled returns a command with a label, or nil if it has a comment that is no
// document or has a criticality already. A new comment comes right after the name of
// the command, so that it is seen before long arguments.
func labelled(body bson.Raw, class spillway.Criticality) bson.Raw {
	elements, err := body.Elements()
	if err != nil || len(elements) == 0 {
		return nil
	}
	var own bson.Raw
	if v, err := body.LookupErr(commentKey); err == nil {
		var ok bool
		if own, ok = v.DocumentOK(); !ok {
			return nil
		}
		if _, err := own.LookupErr(criticalityKey); err == nil {
			return nil
		}
	}
	doc := newDocument(len(body))
	for i, e := range elements {
		if e.Key() != commentKey {
			doc = append(doc, e...)
		}
		if i == 0 {
			doc = appendLabel(doc, own, class)
		}
	}
	return endDocument(doc)
}

// appendLabel appends the comment with the members of own, which may be nil.
func appendLabel(doc []byte, own bson.Raw, class spillway.Criticality) []byte {
	comment := newDocument(len(own))
	if len(own) > 0 {
		comment = append(comment, own[4:len(own)-1]...)
	}
	comment = endDocument(appendValue(comment, criticalityKey, class.String()))
	doc = append(append(doc, byte(bson.TypeEmbeddedDocument)), commentKey...)
	return append(append(doc, 0), comment...)
}
