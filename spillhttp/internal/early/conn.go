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

// These are values of Conn.owed that are not a number of bytes.
const (
	untracked  = -1 // unknown, as after unexpected bytes: from now on all is passed through
	atBoundary = -2 // zero bytes, and the last request was answered
	inHead     = -3 // a part of a head has arrived
	ahead      = -4 // the next request's first byte arrived before the answer to this one
)

// maxStreak is the longest time in which a connection answers all requests by itself. After that it
// passes one request through, so that the timeouts of the server start again.
const maxStreak = time.Second

// A Conn is a connection that rejects requests early.
type Conn struct {
	netconn.Conn

	rejecter *Rejecter
	// owed is how many bytes of the request that net/http reads are still to come, or one of the
	// constants above. Conn counts the bytes that net/http has read. If these are not the expected
	// ones (a pipelined request, another protocol), the connection becomes untracked.
	owed   atomic.Int64
	head   []byte        // the parts of an incomplete head
	began  time.Time     // begin of the streak of rejected requests
	streak *Head         // the Head for requests of the streak; nil outside of one
	body   int64         // bytes to drop: rest of the body of the last rejected request
	blank  int           // maximum bytes of line ends to drop after that body
	note   atomic.Uint32 // note of the Gate on the last request that was passed through
	peer   string
	addr   netip.Addr // address in peer; zero if peer has none
}

// Peer returns the remote address as text, and as an IP address if it is one.
func (c *Conn) Peer() (text string, addr netip.Addr) { return c.peer, c.addr }

// SetNote stores a note on the request that passes through, for [TakeNote] when it is served.
func (c *Conn) SetNote(note uint32) { c.note.Store(note) }

// enter records a change of state. A request has ended cleanly if nothing was read after its last
// byte.
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
	case http.StateHijacked: // the new owner may read with several goroutines
		c.owed.Store(untracked)
	case http.StateActive, http.StateClosed: // these do not show where a request ends
	}
}

// Read returns the bytes of requests that are not rejected.
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

// drop removes from b the rest of the last rejected request: its body, and the line ends that
// net/http drops after a POST. It returns how many bytes are left.
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

// blankAfterPost is the maximum number of bytes of line ends that net/http drops after a POST.
const blankAfterPost = 4

// examine rejects the request in b, or tracks the bytes if they are passed through.
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

// reject answers the request in b, parsed as x, if the Gate rejects it.
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

// track updates owed after b was passed through. owed is its value before.
func (c *Conn) track(owed int64, b []byte) {
	switch {
	case owed == 0 && len(b) == 1:
		// While a request is answered, net/http waits for one more byte, to notice when the client
		// leaves. A quick client may send its next request then.
		c.head = append(c.head, b[0])
		c.owed.Store(ahead)
	case owed == atBoundary:
		c.owed.Store(c.begin(b))
	case owed == inHead:
		c.head = append(c.head, b...)
		c.owed.Store(c.begin(c.head))
	default: // ahead becomes untracked, too
		c.owed.Store(max(owed-int64(len(b)), untracked))
	}
}

// maxHead is the length, in bytes, up to which a head in several pieces is tracked.
const maxHead = 4096

// MaxBody is the longest body, in bytes, of a request that can be rejected early. Reading more
// costs more than a new connection.
const MaxBody = 16 << 10

var emptyLine = []byte(crlf + crlf)

// begin returns the value of owed after b, the first bytes of a request.
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

// beginStreak sets a write deadline for answers that the client does not read. The server sets none
// between requests.
func (c *Conn) beginStreak(now time.Time, x *Head) error {
	if c.streak != nil {
		return nil
	}
	c.began, c.streak = now, x
	return c.Conn.SetWriteDeadline(now.Add(2 * maxStreak))
}

// endStreak removes that deadline before b is passed through. It makes an empty line at the start
// of b invalid, which net/http accepts only after a POST: if the last request that net/http has
// seen is a POST, it does not know of the requests that were rejected since then.
func (c *Conn) endStreak(b []byte) {
	if c.streak == nil {
		return
	}
	c.rejecter.heads.Put(c.streak)
	c.streak = nil
	_ = c.Conn.SetWriteDeadline(time.Time{}) // if this fails, the server's writes fail, too
	if b[0] == '\r' || b[0] == '\n' {
		b[0] = 0
	}
}
