package wire

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/internal/mongowire"
)

const (
	// PageSize is the length of a [Page].
	PageSize = 16 << 10
	// smallSize is the first buffer of a connection: most of its first messages fit.
	smallSize = 1 << 10
	// Piece is how much of a message that is not kept may take one stall timeout.
	Piece = 256 << 10
)

// A Page is a buffer of the size that most connections need.
type Page = [PageSize]byte

var pages = sync.Pool{New: func() any { return new(Page) }}

// GetPage returns a free page.
func GetPage() *Page { return pages.Get().(*Page) }

// PutPage returns a page to the pool.
func PutPage(p *Page) { pages.Put(p) }

// A Link is one side of a connection, read message by message. It has a buffer only
// while there is something in it. One goroutine uses it.
type Link struct {
	Conn  net.Conn        // to set deadlines while nothing is in flight
	Small bool            // it begins with a small buffer, that grows with what arrives
	Until time.Time       // when reads end, instead of after the stall timeout; zero: they do not
	raw   syscall.RawConn // nil: it takes a buffer to wait for bytes
	try   func(fd uintptr) bool
	stall time.Duration     // for whom stops in the middle; not above zero: none
	blame func(error) error // says whose an error is; nil for nil

	page *Page  // nil if there is none
	buf  []byte // the page, or something longer
	r, w int    // what is in it
	kept int    // bytes of [resources.Memory] in the buffer

	n        int // of the latest try
	err      error
	deadline time.Time // of writing
}

// NewLink returns one side of a connection. The stall timeout bounds a pause in the middle of a
// message; zero or less is no limit. blame makes the errors of reads from and writes to this
// side, but not of [Link.Wait].
func NewLink(c net.Conn, stall time.Duration, blame func(error) error) *Link {
	l := &Link{Conn: c, stall: stall, blame: blame, raw: rawOf(c)}
	l.try = l.tryRead
	return l
}

// Bear changes the stall timeout.
func (l *Link) Bear(stall time.Duration) error {
	l.stall, l.deadline = stall, time.Time{}
	return l.Conn.SetWriteDeadline(time.Time{})
}

// Peek returns the buffered bytes. They are valid until the next call of a method.
func (l *Link) Peek() []byte { return l.buf[l.r:l.w] }

// Discard discards the buffered bytes and releases the buffer.
func (l *Link) Discard() {
	l.r = l.w
	l.Give()
}

// take gets a buffer, unless there is one.
func (l *Link) take() {
	switch {
	case l.buf != nil:
	case l.Small:
		l.buf = make([]byte, smallSize)
	default:
		l.page = GetPage()
		l.buf = l.page[:]
	}
}

// Give releases the buffer if it is empty.
func (l *Link) Give() {
	if l.r < l.w || l.buf == nil {
		return
	}
	l.drop()
	l.r, l.w = 0, 0
}

// drop releases the buffer with its content.
func (l *Link) drop() {
	if l.page != nil {
		PutPage(l.page)
	}
	resources.Memory.Give(l.kept)
	l.page, l.buf, l.kept = nil, nil, 0
}

// Wait waits until at least one byte is buffered. At the end of the stream it returns io.EOF.
func (l *Link) Wait() error {
	if l.r < l.w {
		return nil
	}
	l.Give()
	l.n, l.err = 0, nil
	var err error
	if l.raw == nil {
		l.take()
		l.n, err = l.Conn.Read(l.buf)
	} else {
		err = l.raw.Read(l.try)
	}
	if l.n > 0 { // an error that comes with the last bytes, as io.EOF from crypto/tls, comes again
		l.w += l.n
		return nil
	}
	return cmp.Or(err, l.err, io.EOF)
}

var errMemory = errors.New("the process keeps as many bytes for clients as it may")

// More reads until n bytes are buffered. The buffer grows with the data that arrives, not with
// the declared length.
func (l *Link) More(n int) error {
	if l.w-l.r >= n {
		return nil
	}
	until := l.Until
	if until.IsZero() && l.stall > 0 {
		until = time.Now().Add(l.stall)
	}
	if !until.IsZero() {
		if err := l.Conn.SetReadDeadline(until); err != nil {
			return l.blame(err)
		}
		defer l.Conn.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read says so
	}
	l.take()
	for l.w-l.r < n {
		here := l.w - l.r
		if !l.room(min(n, max(2*here, len(l.buf)))) {
			return l.blame(errMemory)
		}
		m, err := io.ReadAtLeast(l.Conn, l.buf[l.w:], min(n, len(l.buf)-l.r)-here)
		l.w += m
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return l.blame(err)
		}
	}
	return nil
}

// room makes room for n bytes, including the buffered ones. It reports false if the memory
// budget of the process is used up.
func (l *Link) room(n int) bool {
	if n <= len(l.buf)-l.r {
		return true
	}
	if n <= len(l.buf) {
		l.w = copy(l.buf, l.buf[l.r:l.w])
		l.r = 0
		return true
	}
	if !resources.Memory.Take(n) {
		return false
	}
	to := make([]byte, n)
	l.w = copy(to, l.buf[l.r:l.w])
	l.drop()
	l.r, l.buf, l.kept = 0, to, n
	return true
}

// The errors of message lengths.
var (
	ErrLength  = errors.New("a message says that it has a length which none has")
	ErrTooLong = errors.New("a message that is longer than it may be")
)

// Next reads a message whose first byte has arrived. If the message is longer than keep and
// than the buffer, or memory is short, the frame has only its beginning. It is valid until the
// next message is read. A longest above 0 is the maximum length.
func (l *Link) Next(keep, longest int) (f Frame, err error) {
	if err := l.More(mongowire.HeaderSize); err != nil {
		return f, err
	}
	f.Header = mongowire.ParseHeader(l.buf[l.r:])
	length := int(f.Length)
	if !f.Fits() {
		return f, ErrLength
	}
	if longest > 0 && length > longest {
		return f, ErrTooLong
	}
	n := min(length, max(PageSize, keep))
	if length > n && f.OpCode == mongowire.OpCompressed {
		n = min(length, CompressedHead)
	}
	err = l.More(n)
	if least := min(length, PageSize); errors.Is(err, errMemory) && l.w-l.r >= least {
		n, err = min(n, l.w-l.r), nil
	}
	if err != nil {
		return f, err
	}
	f.Head = l.buf[l.r : l.r+n]
	f.Rest = length - n
	return f, nil
}

// Pass discards the head of a message that is not needed any more. The rest of the message is
// still to be read.
func (l *Link) Pass(f Frame) { l.r += len(f.Head) }

// Write sends all of b. The other side has the stall timeout to take it.
func (l *Link) Write(b []byte) error {
	if l.stall > 0 {
		if now := time.Now(); l.deadline.Sub(now) < l.stall*7/8 {
			l.deadline = now.Add(l.stall)
			if err := l.Conn.SetWriteDeadline(l.deadline); err != nil {
				return l.blame(err)
			}
		}
	}
	_, err := l.Conn.Write(b)
	return l.blame(err)
}

// Forward forwards a message. Bytes that have not arrived yet are copied from one connection
// to the other without buffering.
func (l *Link) Forward(f Frame, to *Link) error {
	if err := to.Write(f.Head); err != nil {
		return err
	}
	l.Pass(f)
	return l.Stream(f.Rest, to)
}

// Stream forwards the next n bytes; without a side to forward them to, it discards them.
func (l *Link) Stream(n int, to *Link) error {
	sink := io.Discard
	if to != nil {
		sink = to.Conn
	}
	for n > 0 {
		if err := l.extend(time.Now(), to); err != nil {
			return err
		}
		m, err := io.CopyN(sink, l.Conn, int64(min(n, Piece)))
		n -= int(m)
		if errors.Is(err, io.EOF) {
			return l.blame(io.ErrUnexpectedEOF)
		}
		if err != nil {
			// The error of a copy does not show which side has failed.
			if to != nil && (HungUp(to.Conn) || errors.Is(err, os.ErrDeadlineExceeded) && full(to.Conn)) {
				return to.blame(err)
			}
			return l.blame(err)
		}
	}
	if l.stall > 0 {
		return l.blame(l.Conn.SetReadDeadline(time.Time{}))
	}
	return nil
}

// extend gives both sides time for another Piece.
func (l *Link) extend(now time.Time, to *Link) error {
	if l.stall > 0 {
		if err := l.Conn.SetReadDeadline(now.Add(l.stall)); err != nil {
			return l.blame(err)
		}
	}
	if to != nil && to.stall > 0 {
		to.deadline = now.Add(to.stall)
		if err := to.Conn.SetWriteDeadline(to.deadline); err != nil {
			return to.blame(err)
		}
	}
	return nil
}
