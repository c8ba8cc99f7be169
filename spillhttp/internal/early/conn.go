package early

import (
	"bytes"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/longheads"
	"github.com/seed90641741/spillway/internal/netconn"
)

// What is owed by a connection, where it is not a number of bytes.
const (
	untracked  = -1 // unknown, as after more than was owed: from here on, all is passed through
	atBoundary = -2 // nothing, and the last request was answered
	inHead     = -3 // the rest of a head
	ahead      = -4 // the first byte of the next request was read while this one is answered
)

// maxStreak is for how long in a row a connection answers by itself. Then it passes
// one request through, so that the timeouts of the server begin again.
const maxStreak = time.Second

// A Conn is a connection that rejects requests early.
type Conn struct {
	netconn.Conn

	rejecter *Rejecter
	// owed is how many bytes of the request that net/http reads are still to
	// come. It counts what was read: whatever else is read (the next request,
	// pipelined, or another protocol) makes the connection untracked.
	owed   atomic.Int64
	head   []byte        // the pieces of a head so far
	began  time.Time     // the streak
	streak *Head         // of the requests in it; nil outside
	body   int64         // bytes to drop, of the last of them
	blank  int           // ends of lines to drop at most after that body
	note   atomic.Uint32 // of the gate, on the request that was passed through last
	peer   string
	addr   netip.Addr // of peer; what is no address is the zero Addr
}

// Peer returns the remote address, as a text and, if it is one, as an IP address.
func (c *Conn) Peer() (text string, addr netip.Addr) { return c.peer, c.addr }

// SetNote leaves a note on a request that passes through, for [TakeNote] when it is served.
func (c *Conn) SetNote(note uint32) { c.note.Store(note) }

// enter takes in a change of state. A request ends where nothing was read after
// the last of its bytes.
func (c *Conn) enter(state http.ConnState) {
	switch state {
	case http.StateNew:
		c.peer = c.RemoteAddr().String()
		a, _ := netip.ParseAddrPort(c.peer)
		c.addr = a.Addr()
		c.owed.Store(atBoundary)
	case http.StateIdle:
		if !c.owed.CompareAndSwap(0, atBoundary) && !c.owed.CompareAndSwap(ahead, inHead) {
			c.owed.Store(untracked)
		}
	case http.StateHijacked: // the new owner may read with many goroutines
		c.owed.Store(untracked)
	case http.StateActive, http.StateClosed: // say nothing of where a request ends
	}
}

// Read reads the bytes of requests that are not rejected.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		owed := c.owed.Load()
		if n <= 0 || owed == untracked {
			return n, err
		}
		if c.streak != nil {
			if n = c.drop(p[:n]); n == 0 && err == nil {
				continue
			}
		}
		if owed != atBoundary || err != nil {
			c.track(owed, p[:n])
			return n, err
		}
		rejected, err := c.examine(p[:n])
		if err != nil {
			return 0, err
		}
		if !rejected {
			c.endStreak(p[:n])
			return n, nil
		}
	}
}

// drop removes from b what belongs to the request that was answered last: the rest of its body, and what net/http drops
// after a POST. It returns how many bytes are left.
func (c *Conn) drop(b []byte) (left int) {
	rest := b[min(c.body, int64(len(b))):]
	c.body -= int64(len(b) - len(rest))
	for ; c.blank > 0 && len(rest) > 0 && (rest[0] == '\r' || rest[0] == '\n'); c.blank-- {
		rest = rest[1:]
	}
	if len(rest) < len(b) {
		copy(b, rest)
	}
	return len(rest)
}

// blankAfterPost is how many bytes of ends of lines net/http drops after a POST.
const blankAfterPost = 4

// examine rejects the request in b, or tracks the bytes that are passed through.
func (c *Conn) examine(b []byte) (rejected bool, err error) {
	if c.rejecter.gate.Looks() {
		x := c.streak
		if x == nil {
			x = c.rejecter.heads.Get().(*Head)
		}
		if x.parse(b) {
			rejected, err = c.reject(b, x)
		}
		if x.text = nil; x != c.streak {
			c.rejecter.heads.Put(x)
		}
	}
	if !rejected {
		c.track(atBoundary, b)
	}
	return rejected, err
}

// reject answers the request in b, parsed as x, if it is to be rejected.
func (c *Conn) reject(b []byte, x *Head) (rejected bool, err error) {
	now := c.rejecter.gate.Now()
	if c.streak != nil && now.Sub(c.began) >= maxStreak {
		return false, nil
	}
	answer := c.rejecter.gate.Decide(now, c, x)
	if answer == nil {
		return false, nil
	}
	if err = c.beginStreak(now, x); err == nil {
		_, err = c.Conn.Write(answer)
		if c.body, c.blank = x.owes(b), 0; x.post {
			c.blank = blankAfterPost
		}
		longheads.Answered(c, c.body)
	}
	return true, err
}

// track takes note of what is owed after b, as owed was before it.
func (c *Conn) track(owed int64, b []byte) {
	switch {
	case owed == 0 && len(b) == 1:
		// While a request is answered, net/http waits for one more byte, to learn
		// when the client leaves. A quick client has sent its next request by then.
		c.head = append(c.head, b[0])
		c.owed.Store(ahead)
	case owed == atBoundary:
		c.owed.Store(c.begin(b))
	case owed == inHead:
		c.head = append(c.head, b...)
		c.owed.Store(c.begin(c.head))
	default: // ahead, too, becomes untracked
		c.owed.Store(max(owed-int64(len(b)), untracked))
	}
}

// maxHead is up to which length a head that comes in pieces is tracked.
const maxHead = 4096

// MaxBody is the longest body, in bytes, of a request that can be rejected early: to read more of it costs more than a new
// connection does.
const MaxBody = 16 << 10

var emptyLine = []byte(crlf + crlf)

// begin returns what is owed after b, with which a request has begun.
func (c *Conn) begin(b []byte) (owed int64) {
	if f, ok := frame(c.rejecter.known, b); ok {
		c.head = nil
		return max(f.owes(b), untracked)
	}
	if len(b) >= maxHead || bytes.Contains(b, emptyLine) {
		c.head = nil
		return untracked
	}
	if len(c.head) == 0 {
		c.head = bytes.Clone(b)
	}
	return inHead
}

// beginStreak bounds how long answers may take that the client does not read. In
// between requests the server has no such bound.
func (c *Conn) beginStreak(now time.Time, x *Head) error {
	if c.streak != nil {
		return nil
	}
	c.began, c.streak = now, x
	return c.Conn.SetWriteDeadline(now.Add(2 * maxStreak))
}

// endStreak undoes beginStreak, before b is passed through. An empty line, which net/http
// accepts after a POST only, is made invalid: if a POST is the last that net/http has seen, it does
// not know of the requests since then.
func (c *Conn) endStreak(b []byte) {
	if c.streak == nil {
		return
	}
	c.rejecter.heads.Put(c.streak)
	c.streak = nil
	_ = c.Conn.SetWriteDeadline(time.Time{}) // if that fails, so does what the server writes
	if b[0] == '\r' || b[0] == '\n' {
		b[0] = 0
	}
}
