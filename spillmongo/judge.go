//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// judge says what an attempt at cmd brought.
func (c *conn) judge(cmd *command, reply []byte, err error) (v verdict) {
	if err != nil {
		v.err = driver.Error{Message: err.Error(), Labels: []string{driver.NetworkError}, Wrapped: err}
		v.canceled, v.unanswered = errors.Is(err, context.Canceled), true
		v.again = cmd.retryable && !v.canceled && !errors.Is(err, context.DeadlineExceeded)
		return v
	}
	m, err := parseMessage(reply)
	if err != nil {
		v.err = err
		return v
	}
	v.reply = m.body
	v.err = driver.ExtractErrorFromServerResponse(bsoncore.Document(m.body))
	desc, write := c.face.Description(), cmd.kind == spillway.KindWrite
	if e, ok := errors.AsType[driver.Error](v.err); ok {
		v.base, v.coded = e.BaseBackoff, e.Code != 0
		v.again = !write && e.RetryableRead() || write && e.RetryableWrite(desc.WireVersion)
	}
	if e, ok := errors.AsType[driver.WriteCommandError](v.err); ok {
		v.base, v.coded, v.done = e.BaseBackoff, true, true
		v.again = write && e.Retryable(desc.Kind, desc.WireVersion)
	}
	v.again = v.again && cmd.retryable
	v.label(labelsOf(v.err))
	return v
}

func (v *verdict) label(labels []string) {
	v.overloaded = slices.Contains(labels, driver.ErrSystemOverloadedError)
	v.safe = slices.Contains(labels, driver.ErrRetryableError)
	v.nothingWritten = slices.Contains(labels, driver.NoWritesPerformed)
}

// judgeOpening returns what it means that no connection could be had. The labels count
// only if the network failed: a server that answers a hello, or a command that
// authenticates, has let the connection in, and its error is of a command that the
// document exempts, whatever labels it has.
func judgeOpening(err error) (v verdict) {
	v.err = err
	if e, ok := errors.AsType[driver.Error](err); ok && !answered(err) {
		v.label(e.Labels)
	}
	var p driver.RetryablePoolError
	if errors.As(err, &p) {
		v.again = p.Retryable()
	}
	if f := fault.Of(err); f.Unsent { // the driver calls it an overload of the server that this process has no connection
		v.unsent, v.again, v.overloaded = true, v.again || v.overloaded && v.safe, false
	}
	return v
}

// answered reports whether an error is, or wraps, what a server answered.
func answered(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) { //nolint:errorlint // the loop unwraps
		case driver.Error:
			if e.Raw != nil || e.Code != 0 {
				return true
			}
		case driver.WriteCommandError, answerError:
			return true
		}
	}
	return false
}

// What [clean] looks for, as it stands in a document.
var (
	keyOK                = []byte("ok\x00")
	okay                 = []byte("\x01ok\x00\x00\x00\x00\x00\x00\x00\xf0\x3f") // as servers write it
	keyErrorLabels       = []byte("errorLabels\x00")
	keyWriteConcernError = []byte("writeConcernError\x00")
)

// clean reports whether an answer, an OP_MSG, is of success without reservations.
// It is asked about each answer, and allocates nothing.
func clean(wm []byte) bool {
	const body = headerSize + 4 + 1
	if opcode(wm) != opMsg || len(wm) < body || wm[body-1] != 0 {
		return false
	}
	doc, ok := sized(wm[body:])
	if !ok {
		return false
	}
	success := false
	for rest := doc[4 : len(doc)-1]; len(rest) > 0; {
		var e bsoncore.Element
		if e, rest, ok = bsoncore.ReadElement(rest); !ok {
			return false
		}
		switch key := e[1:]; {
		case bytes.Equal(e, okay):
			success = true
		case bytes.HasPrefix(key, keyOK):
			n, ok := e.Value().AsInt64OK()
			success = ok && n == 1
		case bytes.HasPrefix(key, keyErrorLabels), bytes.HasPrefix(key, keyWriteConcernError):
			return false
		}
	}
	return success
}

// hiddenLabel replaces RetryableWriteError while the driver decides.
const hiddenLabel = "spillmongo: RetryableWriteError"

func labelsOf(err error) []string {
	if e, ok := errors.AsType[driver.Error](err); ok {
		return e.Labels
	}
	e, _ := errors.AsType[driver.WriteCommandError](err)
	return e.Labels
}

// documentText returns doc as extended JSON, of so many bytes at most.
func documentText(doc []byte, width int) string {
	text, cut := bsoncore.Document(doc).StringN(width)
	if cut {
		text += "..."
	}
	return text
}
