package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// A Kind is a kind of command that the proxy distinguishes.
type Kind uint8

// The kinds.
const (
	Ordinary Kind = iota // all others
	Greeting             // hello and isMaster
	Proving              // who the client is
)

// A Command is the parsed part of a client's message. It shares the bytes of the message.
type Command struct {
	Flags      uint32
	Legacy     bool // an OP_QUERY, which wants an OP_REPLY
	Compressed bool
	Kind       Kind

	Name     []byte
	Doc      []byte // the body, or its beginning
	Whole    bool   // all of the message is here
	Seen     bool   // all of the body is
	Database []byte
	Opens    bool            // a cursor whose getMore waits for news
	Awaits   bool            // a getMore of such a cursor; set by those who know it
	first    mongowire.Value // of the name
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
)

// NoReply reports whether the client expects no answer.
func (c *Command) NoReply() bool { return c.Flags&mongowire.MoreToCome != 0 && !c.Legacy }

// Read reads a message of a client; scratch is the buffer for decompression.
func (c *Command) Read(f Frame, scratch []byte) error {
	code, payload, total, err := f.open(scratch)
	if err != nil {
		return err
	}
	*c = Command{Compressed: f.OpCode == mongowire.OpCompressed, Whole: f.Rest == 0 && len(payload) == total}
	switch code {
	case mongowire.OpMsg:
		err = c.message(payload, total)
	case mongowire.OpQuery:
		err = c.query(payload)
	default:
		err = errOpcode
	}
	switch {
	case err != nil || c.Kind == Ordinary:
		return err
	case c.Compressed:
		return errSecret
	case !c.Whole:
		return errTooLong
	}
	return nil
}

// message reads an OP_MSG from its flags on, which has total bytes.
func (c *Command) message(data []byte, total int) error {
	if len(data) < 4 {
		return errMessage
	}
	c.Flags = binary.LittleEndian.Uint32(data)
	if c.Flags&mongowire.RequiredFlags&^(mongowire.ChecksumPresent|mongowire.MoreToCome) != 0 {
		return errFlags
	}
	data, total = data[4:], total-4
	if c.Flags&mongowire.ChecksumPresent != 0 {
		total -= 4
		data = data[:max(0, min(len(data), total))]
	}
	return c.sections(data, total)
}

// sections reads the sections of an OP_MSG as far as they are there.
func (c *Command) sections(data []byte, total int) error {
	if total < 6 {
		return errMessage
	}
	for total > 0 && len(data) >= 5 {
		size, _ := mongowire.Length(data[1:])
		if data[0] > 1 || size < 5 || size > total-1 || data[0] == 0 && c.Doc != nil {
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
	if c.Whole && (total > 0 || c.Doc == nil) {
		return errMessage
	}
	return nil
}

// body reads the beginning of a document of known size.
func (c *Command) body(doc []byte, size int) error {
	c.Doc = doc
	whole := len(doc) == size
	c.Seen = whole
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
	if whole && len(rest) > 0 || whole && c.Name == nil {
		return errUnreadable
	}
	return nil
}

func (c *Command) field(key []byte, v mongowire.Value) {
	if c.Name == nil {
		c.Name, c.Kind, c.first = key, kindOf(key), v
		return
	}
	switch string(key) {
	case "$db":
		c.Database = v.Text()
		c.Database = c.Database[:min(len(c.Database), maxName)]
	case "maxTimeMS":
		c.maxTime = v
	case "awaitData":
		c.Opens = c.Opens || string(c.Name) == "find" && v.True()
	case "pipeline":
		c.Opens = c.Opens || string(c.Name) == "aggregate" && watches(v)
	case "comment":
		c.label = mongowire.Lookup(v.Document(), "criticality").Text()
	}
}

// watches reports whether a pipeline is that of a change stream, whose first stage says so.
func watches(pipeline mongowire.Value) bool {
	_, stage := First(pipeline.Array())
	name, _ := First(stage.Document())
	return string(name) == "$changeStream"
}

// First returns the first element of a document or an array. Without one both are zero.
func First(doc []byte) (key []byte, v mongowire.Value) {
	for key, v := range mongowire.Elements(doc) {
		return key, v
	}
	return nil, v
}

// Cursor returns the cursor of a getMore.
func (c *Command) Cursor() (id int64, ok bool) {
	if string(c.Name) != "getMore" {
		return 0, false
	}
	return int64Of(c.first)
}

func int64Of(v mongowire.Value) (n int64, ok bool) {
	if v.Kind != mongowire.KindInt64 || len(v.Data) != 8 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(v.Data)), true
}

func kindOf(name []byte) Kind {
	switch string(name) {
	case "hello", "isMaster", "ismaster":
		return Greeting
	case "saslStart", "saslContinue", "authenticate", "getnonce":
		return Proving
	default:
		return Ordinary
	}
}

// query reads an OP_QUERY for a command, which may be wrapped in a $query.
func (c *Command) query(data []byte) error {
	c.Legacy = true
	name, doc, ok := mongowire.ParseQuery(data)
	if !ok {
		return errMessage
	}
	database, ok := bytes.CutSuffix(name, []byte(".$cmd"))
	if !ok || len(database) == 0 {
		return errQuery
	}
	size, _ := mongowire.Length(doc)
	if size < 5 || c.Whole && size > len(doc) {
		return errMessage
	}
	doc = doc[:min(size, len(doc))]
	key, v := First(doc)
	if inner := v.Document(); inner != nil && (string(key) == "$query" || string(key) == "query") {
		doc, size = inner, len(inner)
	}
	err := c.body(doc, size)
	c.Database = database
	return err
}

// Timeout returns maxTimeMS; zero without it.
func (c *Command) Timeout() time.Duration {
	ms, ok := c.maxTime.Number()
	if !ok || !(ms >= 1) || c.Waits() {
		return 0
	}
	return time.Duration(min(ms, float64(24*time.Hour/time.Millisecond))) * time.Millisecond
}

// Waits reports whether the command waits for new data: then maxTimeMS is the maximum wait. A server takes
// maxTimeMS in a getMore of such cursors only, and waits for a second without it.
func (c *Command) Waits() bool { return c.Awaits || c.maxTime.Kind != 0 && string(c.Name) == "getMore" }

// Shorten lowers maxTimeMS to the remaining time, in the message f that the command was read
// from. f must be complete.
func (c *Command) Shorten(f Frame, left time.Duration) {
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
	if c.Flags&mongowire.ChecksumPresent != 0 {
		end := len(f.Head) - 4
		le.PutUint32(f.Head[end:], mongowire.Checksum(f.Head[:end]))
	}
}

// Lowered returns the criticality of a command whose class by the configuration is known. A
// label in the comment can only lower it, because clients are not trusted.
func (c *Command) Lowered(known spillway.Criticality) spillway.Criticality {
	if len(c.label) == 0 {
		return known
	}
	if said, ok := claims.Criticality([]string{string(c.label)}, nil); ok {
		return min(known, said)
	}
	return known
}

// Unacknowledged reports whether the command is a write with a write concern of 0.
func (c *Command) Unacknowledged() bool {
	concern := mongowire.Lookup(c.Doc, "writeConcern").Document()
	w, ok := mongowire.Lookup(concern, "w").Number()
	return ok && w == 0
}

// Access distinguishes reads from writes by the name of the command.
func (c *Command) Access() spillway.Kind {
	switch string(c.Name) {
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

// Resendable reports whether the protocol allows a retry, and maxTimeMS can be changed: it
// cannot inside a compressed message, or if the body is too long to be inspected.
func (c *Command) Resendable() bool {
	return c.Seen && !c.Unacknowledged() && c.Name != nil && !(c.Compressed && c.maxTime.Kind != 0 && c.Timeout() > 0)
}
