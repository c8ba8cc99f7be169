package spillmongo

import (
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway"
)

// exempt are the commands that authenticate a connection again. The specification
// exempts them. Handshakes do not pass here: a hello that does is of runCommand.
var exempt = map[string]bool{"saslStart": true, "saslContinue": true, "authenticate": true, "getnonce": true}

// secret are the commands that have secrets in them: their text is not for monitors,
// and it is not compressed. [exempt] has others, which are not sent again.
var secret = map[string]bool{
	"createUser": true, "updateUser": true, "copydbgetnonce": true, "copydbsaslstart": true, "copydb": true,
}

// kinds are the commands that the driver has a method for. Whatever else there is
// comes from runCommand.
var kinds = map[string]spillway.Kind{
	"aggregate": spillway.KindRead, "count": spillway.KindRead, "distinct": spillway.KindRead, "find": spillway.KindRead,
	"getMore": spillway.KindRead, "killCursors": spillway.KindRead, "listCollections": spillway.KindRead,
	"listDatabases": spillway.KindRead, "listIndexes": spillway.KindRead, "listSearchIndexes": spillway.KindRead,

	"bulkWrite": spillway.KindWrite, "create": spillway.KindWrite, "createIndexes": spillway.KindWrite,
	"createSearchIndexes": spillway.KindWrite, "delete": spillway.KindWrite, "drop": spillway.KindWrite,
	"dropDatabase": spillway.KindWrite, "dropIndexes": spillway.KindWrite, "dropSearchIndex": spillway.KindWrite,
	"findAndModify": spillway.KindWrite, "insert": spillway.KindWrite, "update": spillway.KindWrite,
	"updateSearchIndex": spillway.KindWrite,
	"commitTransaction": spillway.KindWrite, "abortTransaction": spillway.KindWrite,
}

// A command is a message that asks for something, and what the retry policies
// need to know of it.
type command struct {
	message

	wire []byte // uncompressed
	name string
	kind spillway.Kind

	transaction bool // part of a transaction, its end included
	ends        bool // a transaction
	retryable   bool // under the policies that are not for overload
}

// parseCommand returns what wm asks for. Commands of runCommand are of no kind,
// whatever they are called.
func parseCommand(wm []byte, runCommand bool) (c command, err error) {
	if c.message, err = parseMessage(wm); err != nil {
		return c, err
	}
	c.wire, c.name = wm, firstKey(c.body)
	c.kind = kinds[c.name]
	if c.name == "aggregate" && writes(c.body) {
		c.kind = spillway.KindWrite
	}
	if runCommand {
		c.kind = spillway.KindUnknown
	}
	_, err = c.body.LookupErr("autocommit")
	c.transaction = err == nil
	c.ends = c.name == "commitTransaction" || c.name == "abortTransaction"
	c.retryable = c.isRetryable()
	return c, nil
}

// isRetryable reports whether the command is a retryable read or a retryable
// write. Of a write the driver tells by giving it a transaction number.
func (c *command) isRetryable() bool {
	switch {
	case c.transaction:
		return c.ends && c.kind == spillway.KindWrite
	case c.kind == spillway.KindWrite:
		_, err := c.body.LookupErr("txnNumber")
		return err == nil
	default:
		return c.kind == spillway.KindRead && c.name != "getMore" && c.name != "killCursors"
	}
}

// driverRetries reports whether the driver would retry the command by itself.
func (c *command) driverRetries() bool { return c.retryable && c.kind == spillway.KindWrite }

// writes reports whether the last stage of an aggregation writes its result.
func writes(body bson.Raw) bool {
	stages, ok := body.Lookup("pipeline").ArrayOK()
	if !ok {
		return false
	}
	values, err := stages.Values()
	if err != nil || len(values) == 0 {
		return false
	}
	last, ok := values[len(values)-1].DocumentOK()
	return ok && slices.Contains([]string{"$out", "$merge"}, firstKey(last))
}

// cursor reports whether the command belongs to a cursor, which lives at one
// server.
func (c *command) cursor() bool { return ofCursor(c.name) }

func ofCursor(name string) bool { return name == "getMore" || name == "killCursors" }

// secret reports whether the command is not for monitors.
func (c *command) secret() bool {
	_, err := c.body.LookupErr("speculativeAuthenticate") // of a hello
	return secret[c.name] || err == nil
}

// compressible reports whether the wire protocol lets the command be compressed.
func (c *command) compressible() bool { return !secret[c.name] && !helloNames[c.name] }

// database returns the name of the database that the command goes to.
func (c *command) database() string {
	name, _ := c.body.Lookup("$db").StringValueOK()
	return name
}

// number gives the command another request ID.
func (c *command) number(id int32) { binary.LittleEndian.PutUint32(c.wire[4:], uint32(id)) }

// shorten lowers maxTimeMS, where the command has it, to what is left.
func (c *command) shorten(left time.Duration) {
	v, err := c.body.LookupErr("maxTimeMS")
	if err != nil || v.Type != bson.TypeInt64 || len(v.Value) != 8 {
		return
	}
	ms := (left + time.Millisecond - 1) / time.Millisecond
	if old, _ := v.AsInt64OK(); int64(ms) < old {
		binary.LittleEndian.PutUint64(v.Value, uint64(max(ms, 1)))
	}
}

// majority makes the command wait for a majority, as the transactions specification
// says for a commit that is sent again after its answer was lost: otherwise it may
// succeed and be undone by a failover.
func (c *command) majority(wtimeout bool) error {
	concern := bson.D{{Key: "w", Value: "majority"}}
	if old, ok := c.body.Lookup("writeConcern").DocumentOK(); ok {
		concern = append(concern, others(old, "w")...)
	}
	if wtimeout && !slices.ContainsFunc(concern, func(e bson.E) bool { return e.Key == "wtimeout" }) {
		concern = append(concern, bson.E{Key: "wtimeout", Value: int64(10_000)})
	}
	elements, err := c.body.Elements()
	if err != nil {
		return err
	}
	body := newDocument(len(c.body))
	for _, e := range elements {
		if e.Key() != "writeConcern" {
			body = append(body, e...)
		}
	}
	wire := c.withBody(c.wire, endDocument(appendValue(body, "writeConcern", concern)))
	c.message, err = parseMessage(wire)
	c.wire = wire
	return err
}

// others returns the elements of doc but for one.
func others(doc bson.Raw, key string) (rest bson.D) {
	elements, err := doc.Elements()
	if err != nil {
		return nil
	}
	for _, e := range elements {
		if e.Key() != key {
			rest = append(rest, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return rest
}

// byRunCommand reports whether the caller is a method of the driver that sends a
// command which it does not look into. The command itself does not tell.
func byRunCommand() bool { return calledBy("(*Database).RunCommand") }

// byChangeStream reports whether the caller opens a change stream, which the driver
// retries itself.
func byChangeStream() bool { return calledBy("(*ChangeStream).executeOperation") }

// calledBy reports whether the caller is a method of the driver's package mongo with a
// name that begins so.
func calledBy(method string) (called bool) {
	callers(func(name string) bool {
		called = strings.HasPrefix(name, "mongo."+method)
		return called
	})
	return called
}

// callers calls f with the names of the driver's functions that called, from the inside
// out and without the module's path, until it returns true.
func callers(f func(name string) bool) {
	var pcs [48]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, "go.mongodb.org/mongo-driver/v2/"); ok && f(name) || !more {
			return
		}
	}
}

// callersKind returns the kind of the command that the caller is about to write, and
// whether that ends a transaction. It is unknown of an aggregation, which may write its
// result, and of a command that the driver does not look into.
func callersKind() (kind spillway.Kind, ends bool) {
	callers(func(name string) bool {
		if strings.HasPrefix(name, batchCursor) || strings.HasPrefix(name, "mongo.(*ChangeStream).") {
			kind = spillway.KindRead
			return true
		}
		op, _ := strings.CutPrefix(name, "mongo.(*")
		op, ok := strings.CutSuffix(op, ").execute")
		if !ok {
			return false
		}
		switch op = strings.TrimSuffix(op, "Op"); op {
		case "aggregate":
		case "clientBulkWrite":
			kind = spillway.KindWrite
		case "dropCollection":
			kind = kinds["drop"]
		default:
			kind, ends = kinds[op], op == "commitTransaction" || op == "abortTransaction"
		}
		return true
	})
	return kind, ends
}
