package mongoproxy

import (
	"github.com/seed90641741/spillway/internal/mongowire"
)

// A handshake is what the hello of a client says.
type handshake struct {
	application  string
	driver       string
	backpressure bool // the driver backs off by itself
	balanced     bool // the driver believes to be behind a load balancer
}

// maxName bounds what is kept of names that clients give themselves, as MongoDB does.
const maxName = 128

func newHandshake(doc []byte) (h handshake) {
	for key, v := range mongowire.Elements(doc) {
		switch string(key) {
		case "client":
			h.application = name(mongowire.Lookup(mongowire.Lookup(v.Document(), "application").Document(), "name"))
			h.driver = name(mongowire.Lookup(mongowire.Lookup(v.Document(), "driver").Document(), "name"))
		case "backpressure":
			n, number := v.Number() // a version; 0 is none
			h.backpressure = v.True() || v.Kind != mongowire.KindBoolean && !(number && n == 0)
		case "loadBalanced":
			h.balanced = v.True()
		}
	}
	return h
}

func name(v mongowire.Value) string {
	text := v.Text()
	return string(text[:min(len(text), maxName)])
}

// ofSet are the fields of a hello that tell of a replica set. Those of sharded
// clusters and of standalones have none of them.
func ofSet(field string) bool {
	switch field {
	case "setName", "setVersion", "hosts", "passives", "arbiters", "primary", "me", "electionId", "isreplicaset",
		"secondary", "arbiterOnly", "passive", "hidden", "tags", "secondaryDelaySecs", "slaveDelay":
		return true
	default:
		return false
	}
}

// A mask is how the answer to a hello is changed.
type mask struct {
	hide    bool     // a replica set
	service [12]byte // for a client that wants a serviceId; zero if none does
}

// apply returns the document as the client is to see it.
func (m mask) apply(doc []byte) []byte {
	var b mongowire.Builder
	member, service := false, m.service == [12]byte{}
	for key, v := range mongowire.Elements(doc) {
		field := string(key)
		if m.hide && ofSet(field) {
			member = member || field == "setName" || field == "isreplicaset"
			continue
		}
		service = service || field == "serviceId"
		b.Value(field, v)
	}
	if member && mongowire.Lookup(doc, "msg").Kind == 0 {
		b.Text("msg", "isdbgrid")
	}
	if !service && mongowire.Lookup(doc, "ok").True() {
		b.ObjectID("serviceId", m.service)
	}
	return b.Document()
}

// greet passes a hello on, and what is answered: once, or as often as the server has
// news.
func (c *conn) greet(f frame, cmd *command) error {
	s := c.settings
	if !c.greeted {
		c.greeted = true
		c.client = newHandshake(cmd.doc)
		c.identify()
	}
	m := mask{hide: s.hide}
	if c.client.balanced {
		m.service = c.place.id
	}
	speculative := mongowire.Lookup(cmd.doc, "speculativeAuthenticate").Document()
	c.claim(speculative)
	if err := c.down.forward(f, c.up); err != nil {
		return requestError(err)
	}
	c.streams.Store(true) // it may take as long as the client likes
	defer c.streams.Store(false)
	for first, more := true, true; more; first = false {
		r, err := c.answer(f.RequestID, !first)
		if err != nil {
			return err
		}
		if more, err = c.greetBack(r, m, speculative != nil); err != nil {
			return err
		}
	}
	return nil
}

// greetBack sends one answer to a hello, and reports whether another follows.
func (c *conn) greetBack(r frame, m mask, speculative bool) (more bool, err error) {
	doc, flags, ok := documentOf(r)
	if !ok {
		return false, endAs(Broken, "an answer to a hello that cannot be read")
	}
	if speculative {
		c.proven(mongowire.Lookup(doc, "speculativeAuthenticate").Document())
	}
	seen := m.apply(doc)
	c.up.pass(r)
	if r.OpCode == mongowire.OpReply {
		err = c.down.write(mongowire.AppendReply(nil, r.RequestID, r.ResponseTo, seen))
	} else {
		flags &^= mongowire.ChecksumPresent
		err = c.down.write(mongowire.AppendMsg(nil, r.RequestID, r.ResponseTo, flags, seen))
	}
	return flags&mongowire.MoreToCome != 0, clientErrorOf(err)
}

// documentOf returns the document of an answer that is here as a whole, not
// compressed, and has one document only.
func documentOf(r frame) (doc []byte, flags uint32, ok bool) {
	const fields = mongowire.HeaderSize + 20
	if r.rest > 0 {
		return nil, 0, false
	}
	switch {
	case r.OpCode == mongowire.OpReply && len(r.head) > fields:
		doc = r.head[fields:]
	case r.OpCode == mongowire.OpMsg && len(r.head) > mongowire.HeaderSize+5 && r.head[mongowire.HeaderSize+4] == 0:
		var c command
		_ = c.message(r.head[mongowire.HeaderSize:], len(r.head)-mongowire.HeaderSize) // a document is wanted, below
		flags, doc = c.flags, r.head[mongowire.HeaderSize+5:]
	default:
		return nil, 0, false
	}
	doc, _, err := mongowire.Document(doc)
	return doc, flags, err == nil
}
