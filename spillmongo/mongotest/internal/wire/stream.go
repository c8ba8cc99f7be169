package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// keep is the largest buffer that is kept from one message to the next.
const keep = 64 << 10

// A Reader reads messages, one after the other.
type Reader struct {
	src *bufio.Reader
	buf []byte
}

// NewReader returns a Reader of src.
func NewReader(src *bufio.Reader) *Reader { return &Reader{src: src} }

// Next reads a message. What it returned before is no longer valid then. The
// error is io.EOF where the stream ends between messages.
func (r *Reader) Next() (*Message, error) {
	head, err := r.src.Peek(4)
	if err != nil {
		if len(head) > 0 {
			err = unexpected(err)
		}
		return nil, err
	}
	size, _ := mongowire.Length(head)
	if size < headerSize || size > MaxMessageSize {
		return nil, fmt.Errorf("mongotest: a message of %d bytes, must be %d to %d", size, headerSize, MaxMessageSize)
	}
	if err := r.fill(size); err != nil {
		return nil, err
	}
	return Parse(r.buf)
}

// fill reads size bytes, and takes no more than twice the memory of the bytes that
// have come.
func (r *Reader) fill(size int) error {
	if cap(r.buf) > keep {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	for len(r.buf) < size {
		have := len(r.buf)
		chunk := min(size-have, max(keep, have))
		r.buf = slices.Grow(r.buf, chunk)[:have+chunk]
		if _, err := io.ReadFull(r.src, r.buf[have:]); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A Reply is an answer on its way out.
type Reply struct {
	RequestID  int32 // of the reply itself
	ResponseTo int32
	More       bool // another reply follows without a question
}

// Append appends the reply doc to the message m to dst.
func (r Reply) Append(dst []byte, m *Message, doc bson.Raw) ([]byte, error) {
	start := len(dst)
	dst = r.appendMessage(dst, m, doc)
	if !m.Compressed {
		return dst, nil
	}
	small, err := compress(dst[start:], m.Compressor)
	return append(dst[:start], small...), err
}

func (r Reply) appendMessage(dst []byte, m *Message, doc bson.Raw) []byte {
	if m.Legacy {
		return mongowire.AppendReply(dst, r.RequestID, r.ResponseTo, doc)
	}
	return mongowire.AppendMsg(dst, r.RequestID, r.ResponseTo, r.flags(m), doc)
}

func (r Reply) flags(m *Message) (flags uint32) {
	if r.More {
		flags |= mongowire.MoreToCome
	}
	if m.Checksum && !m.Compressed { // inside an OP_COMPRESSED there is none
		flags |= mongowire.ChecksumPresent
	}
	return flags
}
