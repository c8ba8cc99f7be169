package mongoproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/memory"
	"github.com/seed90641741/spillway/internal/mongowire"
)

const (
	pageSize = 16 << 10
	// smallSize is the first buffer of a connection: most of its first messages fit.
	smallSize = 1 << 10
	// piece is how much of a message that is not kept may take one stall timeout.
	piece = 256 << 10
)

var pages = sync.Pool{New: func() any { return new([pageSize]byte) }}

// A link is one side of a connection, read message by message. It has a buffer only
// while there is something in it. One goroutine uses it.
type link struct {
	conn  net.Conn
	raw   syscall.RawConn // nil: it takes a buffer to wait for bytes
	try   func(fd uintptr) bool
	stall time.Duration // for whom stops in the middle; not above zero: none

	page *[pageSize]byte // nil if there is none
	buf  []byte          // the page, or something longer
	r, w int             // what is in it

	small bool // it begins with a small buffer, that grows with what arrives
	kept  int  // bytes of [memory.Process] in the buffer

	n        int // of the latest try
	err      error
	deadline time.Time // of writing
}

func newLink(c net.Conn, stall time.Duration) *link {
	l := &link{conn: c, stall: stall}
	l.raw = rawOf(c)
	l.try = l.tryRead
	return l
}

// bear changes for how long the other side may stop in the middle.
func (l *link) bear(stall time.Duration) error {
	l.stall, l.deadline = stall, time.Time{}
	return l.conn.SetWriteDeadline(time.Time{})
}

// take gets a buffer, unless there is one.
func (l *link) take() {
	switch {
	case l.buf != nil:
	case l.small:
		l.buf = make([]byte, smallSize)
	default:
		l.page = pages.Get().(*[pageSize]byte)
		l.buf = l.page[:]
	}
}

// give gives the buffer back if nothing is in it.
func (l *link) give() {
	if l.r < l.w || l.buf == nil {
		return
	}
	l.drop()
	l.r, l.w = 0, 0
}

// drop gives the buffer back, whatever is in it.
func (l *link) drop() {
	if l.page != nil {
		pages.Put(l.page)
	}
	memory.Process.Give(l.kept)
	l.page, l.buf, l.kept = nil, nil, 0
}

// wait waits for a first byte, unless there is one. Of a stream that has ended it
// returns io.EOF.
func (l *link) wait() error {
	if l.r < l.w {
		return nil
	}
	l.give()
	var err error
	if l.raw == nil {
		l.take()
		l.n, err = l.conn.Read(l.buf)
	} else if err = l.raw.Read(l.try); err == nil {
		err = l.err
	}
	if l.n <= 0 && err == nil {
		err = io.EOF
	}
	if err != nil {
		l.n = 0
	}
	l.w += l.n
	return err
}

var errMemory = errors.New("the process keeps as many bytes for clients as it may")

// more reads until n bytes are there. The buffer grows with what arrives, and not with
// what is announced.
func (l *link) more(n int) error {
	if l.w-l.r >= n {
		return nil
	}
	if l.stall > 0 {
		if err := l.conn.SetReadDeadline(time.Now().Add(l.stall)); err != nil {
			return err
		}
		defer l.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read says so
	}
	l.take()
	for l.w-l.r < n {
		here := l.w - l.r
		if !l.room(min(n, max(2*here, len(l.buf)))) {
			return errMemory
		}
		m, err := io.ReadAtLeast(l.conn, l.buf[l.w:], min(n, len(l.buf)-l.r)-here)
		l.w += m
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// room makes room for n bytes, the ones that are there included. It reports false if
// the process has no memory for them.
func (l *link) room(n int) bool {
	if n <= len(l.buf)-l.r {
		return true
	}
	if n <= len(l.buf) {
		l.w = copy(l.buf, l.buf[l.r:l.w])
		l.r = 0
		return true
	}
	if !memory.Process.Take(n) {
		return false
	}
	to := make([]byte, n)
	l.w = copy(to, l.buf[l.r:l.w])
	l.drop()
	l.r, l.buf, l.kept = 0, to, n
	return true
}

// A frame is a message, or the beginning of one.
type frame struct {
	mongowire.Header

	head []byte // what is there
	rest int    // how many bytes are still to come
}

var errLength = errors.New("a message says that it has a length which none has")

// next reads a message of which the first byte is there. If it is longer than keep,
// and than the buffer, or there is no memory for more, that is its beginning. It is good
// until the next one is read. A longest of more than 0 is the longest that is taken.
func (l *link) next(keep, longest int) (f frame, err error) {
	if err := l.more(mongowire.HeaderSize); err != nil {
		return f, err
	}
	f.Header = mongowire.ParseHeader(l.buf[l.r:])
	length := int(f.Length)
	if !f.Fits() {
		return f, errLength
	}
	if longest > 0 && length > longest {
		return f, errUnprovenLength
	}
	n := min(length, max(pageSize, keep))
	if length > n && f.OpCode == mongowire.OpCompressed {
		n = min(length, compressedHead)
	}
	err = l.more(n)
	if least := min(length, pageSize); errors.Is(err, errMemory) && l.w-l.r >= least {
		n, err = min(n, l.w-l.r), nil
	}
	if err != nil {
		return f, err
	}
	f.head = l.buf[l.r : l.r+n]
	f.rest = length - n
	return f, nil
}

// pass is the end of a message that is not needed any more, but for what is still to
// come of it.
func (l *link) pass(f frame) { l.r += len(f.head) }

// write sends all of b. The other side has the stall timeout to take it.
func (l *link) write(b []byte) error {
	if l.stall > 0 {
		if now := time.Now(); l.deadline.Sub(now) < l.stall*7/8 {
			l.deadline = now.Add(l.stall)
			if err := l.conn.SetWriteDeadline(l.deadline); err != nil {
				return err
			}
		}
	}
	_, err := l.conn.Write(b)
	return err
}

// An otherSideError is one of the link that is written to.
type otherSideError struct{ error }

func (o otherSideError) Unwrap() error { return o.error }

// forward sends a message on, and passes it. What is still to come goes from one
// connection to the other without being kept.
func (l *link) forward(f frame, to *link) error {
	if err := to.write(f.head); err != nil {
		return otherSideError{err}
	}
	l.pass(f)
	return l.stream(f.rest, to)
}

// stream sends n bytes on that are still to come.
func (l *link) stream(n int, to *link) error {
	for n > 0 {
		now := time.Now()
		if err := l.extend(now, to); err != nil {
			return err
		}
		part := min(n, piece)
		m, err := io.CopyN(to.sink(), l.conn, int64(part))
		n -= int(m)
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return blame(err, to)
		}
	}
	if l.stall > 0 {
		return l.conn.SetReadDeadline(time.Time{})
	}
	return nil
}

// blame finds out which side a copy has failed on, as its error does not tell.
func blame(err error, to *link) error {
	if to != nil && (hungUp(to.conn) || errors.Is(err, os.ErrDeadlineExceeded) && full(to.conn)) {
		return otherSideError{err}
	}
	return err
}

// extend gives both sides time for another piece.
func (l *link) extend(now time.Time, to *link) error {
	if l.stall > 0 {
		if err := l.conn.SetReadDeadline(now.Add(l.stall)); err != nil {
			return err
		}
	}
	if to != nil && to.stall > 0 {
		to.deadline = now.Add(to.stall)
		if err := to.conn.SetWriteDeadline(to.deadline); err != nil {
			return otherSideError{err}
		}
	}
	return nil
}

// sink is where the link's bytes go; a nil link throws them away.
func (l *link) sink() io.Writer {
	if l == nil {
		return io.Discard
	}
	return l.conn
}
