package mongoproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// The kinds of commands that are told apart.
type kind uint8

const (
	ordinary kind = iota
	greeting      // hello and isMaster
	proving       // who the client is
)

// A command is what is known of a message of a client. It shares its bytes.
type command struct {
	flags      uint32
	legacy     bool // an OP_QUERY, which wants an OP_REPLY
	compressed bool
	kind       kind

	name     []byte
	doc      []byte // the body, or its beginning
	whole    bool   // all of the message is here
	seen     bool   // all of the body is
	plain    []byte // the message from its flags on, expanded
	database []byte
	maxTime  mongowire.Value // of maxTimeMS
	label    []byte          // what the comment says of the criticality
}

var (
	errOpcode     = errors.New("an operation code that is not supported")
	errFlags      = errors.New("flags that are not known")
	errMessage    = errors.New("a message whose parts do not fit")
	errQuery      = errors.New("an OP_QUERY that is no command")
	errSecret     = errors.New("a hello or an authentication that is compressed")
	errTooLong    = errors.New("a hello or an authentication that is too long")
	errUnreadable = errors.New("a body that is malformed")
	errNameless   = errors.New("a command before authentication whose name comes too late")
)

// noReply reports whether the client takes no answer.
func (c *command) noReply() bool { return c.flags&mongowire.MoreToCome != 0 && !c.legacy }

// read reads a message of a client; scratch is for what is compressed.
func (c *command) read(f frame, scratch []byte) error {
	*c = command{whole: f.rest == 0}
	code, payload, total := f.OpCode, f.head[mongowire.HeaderSize:], int(f.Length)-mongowire.HeaderSize
	if code == mongowire.OpCompressed {
		z, ok := mongowire.ParseCompressed(payload)
		if !ok {
			return errCompressed
		}
		var err error
		if payload, err = expand(scratch, z); err != nil {
			return err
		}
		code, total, c.compressed = z.OpCode, z.Size, true
		c.whole = c.whole && len(payload) == total
	}
	c.plain = payload
	err := c.parse(code, payload, total)
	if err == nil && c.kind != ordinary && c.compressed {
		return errSecret
	}
	if err == nil && c.kind != ordinary && !c.whole {
		return errTooLong
	}
	return err
}

func (c *command) parse(code int32, payload []byte, total int) error {
	switch code {
	case mongowire.OpMsg:
		return c.message(payload, total)
	case mongowire.OpQuery:
		return c.query(payload)
	default:
		return errOpcode
	}
}

// message reads an OP_MSG from its flags on, of which there are total bytes in all.
func (c *command) message(data []byte, total int) error {
	if len(data) < 4 {
		return errMessage
	}
	c.flags = binary.LittleEndian.Uint32(data)
	if c.flags&mongowire.RequiredFlags&^(mongowire.ChecksumPresent|mongowire.MoreToCome) != 0 {
		return errFlags
	}
	data, total = data[4:], total-4
	if c.flags&mongowire.ChecksumPresent != 0 {
		total -= 4
		data = data[:max(0, min(len(data), total))]
	}
	return c.sections(data, total)
}

// sections reads the sections of an OP_MSG as far as they are there.
func (c *command) sections(data []byte, total int) error {
	if total < 6 {
		return errMessage
	}
	for total > 0 && len(data) >= 5 {
		size, _ := mongowire.Length(data[1:])
		if data[0] > 1 || size < 5 || size > total-1 || data[0] == 0 && c.doc != nil {
			return errMessage
		}
		section := data[1:min(1+size, len(data))]
		if data[0] == 0 {
			if err := c.body(section, size); err != nil {
				return err
			}
		}
		data, total = data[len(section)+1:], total-size-1
	}
	if c.whole && (total > 0 || c.doc == nil) {
		return errMessage
	}
	return nil
}

// body reads the beginning of a document of which the size is known.
func (c *command) body(doc []byte, size int) error {
	c.doc = doc
	whole := len(doc) == size
	c.seen = whole
	rest := doc[min(4, len(doc)):]
	if whole {
		rest = doc[4 : size-1]
		if doc[size-1] != 0 {
			return errUnreadable
		}
	}
	for len(rest) > 0 && rest[0] != 0 {
		kind, key, value, tail, ok := mongowire.Element(rest)
		if !ok {
			break
		}
		c.field(key, mongowire.Value{Kind: kind, Data: value})
		rest = tail
	}
	if whole && len(rest) > 0 || whole && c.name == nil {
		return errUnreadable
	}
	return nil
}

func (c *command) field(key []byte, v mongowire.Value) {
	if c.name == nil {
		c.name, c.kind = key, kindOf(key)
		return
	}
	switch string(key) {
	case "$db":
		c.database = v.Text()
		c.database = c.database[:min(len(c.database), maxName)]
	case "maxTimeMS":
		c.maxTime = v
	case "comment":
		c.label = mongowire.Lookup(v.Document(), "criticality").Text()
	}
}

func kindOf(name []byte) kind {
	switch string(name) {
	case "hello", "isMaster", "ismaster":
		return greeting
	case "saslStart", "saslContinue", "authenticate", "getnonce":
		return proving
	default:
		return ordinary
	}
}

// query reads an OP_QUERY for a command, which may be wrapped in a $query.
func (c *command) query(data []byte) error {
	c.legacy = true
	name, doc, ok := mongowire.ParseQuery(data)
	if !ok {
		return errMessage
	}
	database, ok := bytes.CutSuffix(name, []byte(".$cmd"))
	if !ok || len(database) == 0 {
		return errQuery
	}
	size, _ := mongowire.Length(doc)
	if size < 5 || c.whole && size > len(doc) {
		return errMessage
	}
	doc = doc[:min(size, len(doc))]
	for key, v := range mongowire.Elements(doc) {
		if inner := v.Document(); inner != nil && (string(key) == "$query" || string(key) == "query") {
			doc, size = inner, len(inner)
		}
		break
	}
	err := c.body(doc, size)
	c.database = database
	return err
}

// timeout returns what maxTimeMS says, zero if it says nothing.
func (c *command) timeout() time.Duration {
	ms, ok := c.maxTime.Number()
	if !ok || !(ms >= 1) || c.waits() {
		return 0
	}
	return time.Duration(min(ms, float64(24*time.Hour/time.Millisecond))) * time.Millisecond
}

// waits reports whether the command waits for news: then maxTimeMS is for how long.
func (c *command) waits() bool { return c.maxTime.Kind != 0 && string(c.name) == "getMore" }

// shorten lowers maxTimeMS in the message to what is left.
func (c *command) shorten(left time.Duration) {
	ms := uint64(max(1, (left+time.Millisecond-1)/time.Millisecond))
	le := binary.LittleEndian
	switch v := c.maxTime; v.Kind {
	case mongowire.KindInt32:
		le.PutUint32(v.Data, uint32(ms))
	case mongowire.KindInt64:
		le.PutUint64(v.Data, ms)
	case mongowire.KindDouble:
		le.PutUint64(v.Data, math.Float64bits(float64(ms)))
	default:
	}
}

// unacknowledged reports whether the command is a write with a write concern of 0.
func (c *command) unacknowledged() bool {
	concern := mongowire.Lookup(c.doc, "writeConcern").Document()
	w, ok := mongowire.Lookup(concern, "w").Number()
	return ok && w == 0
}

// access tells reads from writes, as far as that can be told by the name.
func (c *command) access() spillway.Kind {
	switch string(c.name) {
	case "aggregate", "count", "distinct", "find", "getMore", "killCursors", "listCollections", "listDatabases",
		"listIndexes", "listSearchIndexes":
		return spillway.KindRead
	case "bulkWrite", "create", "createIndexes", "createSearchIndexes", "delete", "drop", "dropDatabase", "dropIndexes",
		"dropSearchIndex", "findAndModify", "findandmodify", "insert", "update", "updateSearchIndex",
		"commitTransaction", "abortTransaction":
		return spillway.KindWrite
	default:
		return spillway.KindUnknown
	}
}
