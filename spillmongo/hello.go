package spillmongo

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// helloTrue returns wm with the flag backpressure as the document of February
// 2026 has it, true in place of the "2" that the driver sends, or wm itself if it
// is no hello with that flag.
func helloTrue(wm []byte) []byte {
	start, doc := helloBody(wm)
	if doc == nil {
		return wm
	}
	if _, ok := doc.Lookup("backpressure").StringValueOK(); !ok {
		return wm
	}
	elements, err := doc.Elements()
	if err != nil {
		return wm
	}
	body := newDocument(len(doc))
	for _, e := range elements {
		if e.Key() == "backpressure" {
			body = appendValue(body, "backpressure", true)
		} else {
			body = append(body, e...)
		}
	}
	out := append(bytes.Clone(wm[:start]), endDocument(body)...)
	out = append(out, wm[start+len(doc):]...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return out
}

// helloBody returns the document of a hello, in either of its two forms, and
// where it starts; or nil if wm is something else.
func helloBody(wm []byte) (start int, doc bson.Raw) {
	switch opcode(wm) {
	case opMsg:
		m, err := parseMessage(wm)
		if err != nil {
			return 0, nil
		}
		start, doc = m.bodyStart, m.body
	case opQuery:
		start, doc = queryBody(wm)
	}
	if doc == nil || doc.Validate() != nil || !helloNames[firstKey(doc)] {
		return 0, nil
	}
	return start, doc
}

// queryBody returns the document of an OP_QUERY.
func queryBody(wm []byte) (start int, doc bson.Raw) {
	const name = headerSize + 4 // flags
	if len(wm) < name || int(binary.LittleEndian.Uint32(wm)) != len(wm) {
		return 0, nil
	}
	end := bytes.IndexByte(wm[name:], 0)
	start = name + end + 1 + 4 + 4 // number to skip, number to return
	if end < 0 || start > len(wm) {
		return 0, nil
	}
	doc, ok := sized(wm[start:])
	if !ok {
		return 0, nil
	}
	return start, doc
}

var helloNames = map[string]bool{"hello": true, "isMaster": true, "ismaster": true}

// firstKey returns the key of the first element of doc: the name of a command.
func firstKey(doc bson.Raw) string {
	e, err := doc.IndexErr(0)
	if err != nil {
		return ""
	}
	key, err := e.KeyErr()
	if err != nil {
		return ""
	}
	return key
}

// A dialer is the driver's, with connections whose handshake says true.
type dialer struct {
	base interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.base.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &helloConn{Conn: c}, nil
}

// A helloConn rewrites the first message, which is the handshake.
type helloConn struct {
	net.Conn

	shaken bool // by the one goroutine that sets the connection up
}

func (c *helloConn) Write(b []byte) (int, error) {
	if c.shaken {
		return c.Conn.Write(b)
	}
	c.shaken = true
	if n, err := c.Conn.Write(helloTrue(b)); err != nil {
		return min(n, len(b)), err
	}
	return len(b), nil
}
