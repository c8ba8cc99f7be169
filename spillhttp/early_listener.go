package spillhttp

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/longheads"
	"github.com/seed90641741/spillway/internal/netconn"
	"github.com/seed90641741/spillway/ratelimit"
)

// A Listener rejects requests for overload before net/http has read them. Its connections
// examine the bytes that net/http is about to read. The connection answers by itself, and
// net/http never sees the request, if the bytes begin, at the end of the request before, with
// the complete head of an HTTP/1.1 request, on a connection that is kept, with a body of at most 16 KiB, and
// the [Handler] would reject it now. It answers without waiting for the body, and drops that. Everything else is passed
// through unchanged: heads in several pieces, longer bodies and those of unknown length, pipelined requests, upgrades, HTTP/2; but an
// empty line after a request that the connection answered becomes invalid, as it is for net/http after any request
// but a POST. It cannot read TLS, and passes it through. Functions of a [HandlerConfig] that read the body get an error;
// the request is then passed through, and they see it again.
//
// It needs to know where requests end: use [ConnState] and [ConnContext], or let [Handler.Serve] do
// all of this. The Handler must be what serves all requests of the connection.
type Listener struct {
	net.Listener

	handler *Handler
}

// NewListener returns a Listener on l that rejects requests that h would reject.
func NewListener(l net.Listener, h *Handler) *Listener { return &Listener{l, h} }

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	x := &conn{Conn: netconn.Conn{Conn: c}, handler: l.handler}
	x.owed.Store(untracked)
	return x, nil
}

// ConnState informs the connections of a [Listener] about where requests end. It must be
// the [http.Server.ConnState] of a server that serves from one, or be called by
// it; without it all is passed through.
func ConnState(c net.Conn, state http.ConnState) {
	if x, ok := c.(*conn); ok {
		x.enter(state)
	}
}

// Serve serves with s from l, as [http.Server.Serve] does, with early rejection by h, which
// must be the Handler of s. While connections are most of the work of the process, those that come too often
// are reset: see Overload in package connlimit. It extends s.ConnState and s.ConnContext; call it before s serves anything else.
//
// A head is read, and costs processor time, before h can reject the request: if s.MaxHeaderBytes is zero, Serve sets it to
// 64 KiB, where net/http has 1 MiB. Long heads are charged to the address that sends them: see there in package connlimit. Set
// s.ReadHeaderTimeout as well, which has no default.
func (h *Handler) Serve(s *http.Server, l net.Listener) error {
	extend(s, ConnContext, ConnState)
	limited, err := h.limited(s, l)
	if err != nil {
		return err
	}
	return s.Serve(NewListener(limited, h))
}

// ServeTLS serves with s from l, as [http.Server.ServeTLS] does. h must be the Handler of s. Requests are
// rejected in the handler, not early. While handshakes are most of the work of the process, connections that come too often are
// reset before theirs: see Overload in package connlimit. For heads see [Handler.Serve].
func (h *Handler) ServeTLS(s *http.Server, l net.Listener, certFile, keyFile string) error {
	limited, err := h.limited(s, l)
	if err != nil {
		return err
	}
	return s.ServeTLS(limited, certFile, keyFile)
}

// What is owed by a connection, where it is not a number of bytes.
const (
	untracked  = -1 // nobody knows, as after more than was owed: from here on, all is passed through
	atBoundary = -2 // nothing, and the last request was answered
	inHead     = -3 // the rest of a head
	ahead      = -4 // the first byte of the next request was read while this one is answered
)

// maxStreak is for how long in a row a connection answers by itself. Then it passes
// one request through, so that the timeouts of the server begin again.
const maxStreak = time.Second

// conn is a connection that rejects requests early.
type conn struct {
	netconn.Conn

	handler *Handler
	// owed is how many bytes of the request that net/http reads are still to
	// come. It counts what was read: whatever else is read (the next request,
	// pipelined, or another protocol) makes the connection untracked.
	owed   atomic.Int64
	head   []byte        // the pieces of a head so far
	began  time.Time     // the streak
	streak *head         // of the requests in it; nil outside
	body   int64         // bytes to drop, of the last of them
	blank  int           // ends of lines to drop at most after that body
	drawn  atomic.Uint32 // the level of the request that was passed through last; 0: none
	peer   string
	addr   netip.Addr // of peer; what is no address is the zero Addr
}

// enter takes in a change of state. A request ends where nothing was read after
// the last of its bytes.
func (c *conn) enter(state http.ConnState) {
	switch state {
	case http.StateNew:
		c.peer = c.RemoteAddr().String()
		c.addr = addressOf(c.peer)
		c.owed.Store(atBoundary)
	case http.StateIdle:
		if !c.owed.CompareAndSwap(0, atBoundary) && !c.owed.CompareAndSwap(ahead, inHead) {
			c.owed.Store(untracked)
		}
	case http.StateHijacked: // by somebody who may read with many goroutines
		c.owed.Store(untracked)
	case http.StateActive, http.StateClosed: // say nothing of where a request ends
	}
}

// Read reads the bytes of requests that are not rejected.
func (c *conn) Read(p []byte) (int, error) {
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
		refused, err := c.examine(p[:n])
		if err != nil {
			return 0, err
		}
		if !refused {
			c.endStreak(p[:n])
			return n, nil
		}
	}
}

// drop removes from b what belongs to the request that was answered last: the rest of its body, and what net/http drops
// after a POST. It returns how many bytes are left.
func (c *conn) drop(b []byte) (left int) {
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
func (c *conn) examine(b []byte) (refused bool, err error) {
	if c.handler.looks.Load() > 0 {
		x := c.streak
		if x == nil {
			x = heads.Get().(*head)
		}
		if x.frame(b) {
			refused, err = c.refuse(b, x)
		}
		if x != c.streak {
			heads.Put(x)
		}
	}
	if !refused {
		c.track(atBoundary, b)
	}
	return refused, err
}

// track takes note of what is owed after b, as owed was before it.
func (c *conn) track(owed int64, b []byte) {
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

var emptyLine = []byte("\r\n\r\n")

// begin returns what is owed after b, with which a request has begun.
func (c *conn) begin(b []byte) (owed int64) {
	if f, ok := frame(b); ok {
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

// refuse answers the request in b, parsed as x, if it is to be rejected.
func (c *conn) refuse(b []byte, x *head) (refused bool, err error) {
	now := c.handler.clock.Now()
	if c.streak != nil && now.Sub(c.began) >= maxStreak {
		return false, nil
	}
	a := arrival{caller: ratelimit.Caller{Addr: c.addr}}
	why := c.decide(now, x, b, &a)
	if !why.Rejected() {
		return false, nil
	}
	if err = c.beginStreak(now, x); err == nil {
		_, err = c.Conn.Write(x.refusal(&why, c.handler.wordingOf(&why), b[:x.method]))
		if c.body, c.blank = x.owes(b), 0; x.post {
			c.blank = blankAfterPost
		}
		longheads.Answered(c, c.body)
	}
	return true, err
}

// decide asks the gates. If code of the user panics, such as Classify, the request passes: the Handler asks again, where a middleware
// can recover.
func (c *conn) decide(now time.Time, x *head, b []byte, a *arrival) (why ingress.Rejection) {
	defer func() {
		if recover() != nil {
			why = ingress.Rejection{}
		}
	}()
	if !c.judge(now, x, b, a) || x.pending.wanted {
		return why
	}
	ctx := context.Background()
	if x.told.Request != nil {
		ctx = x.context
	}
	if why = c.handler.early(ctx, now, a); !why.Rejected() {
		c.drawn.Store(uint32(a.call.Level))
	}
	return why
}

// judge finds out what the request in b is. It reports false if it passes unseen or cannot
// be read. A Handler that is plain needs only the path and the claims.
func (c *conn) judge(now time.Time, x *head, b []byte, a *arrival) bool {
	h := c.handler
	trust := h.ingress.Trust()
	x.told, x.pending = claims.Head{}, pendingBody{}
	var identity string
	if path, ok := x.glance(b); h.plain && ok {
		if h.isHealth(path, trust) {
			return false
		}
	} else {
		r := &x.request
		if !x.read(b, c.peer) || h.unseen(r) {
			return false
		}
		x.told = claims.Head{Request: r, BodyLength: h.bodyLength}
		if x.repeats {
			h.judge(now, r, a)
			return true
		}
		h.recognize(r, a)
		identity = h.identity(r)
	}
	said := *x.claimed(b)
	said.Identity = identity
	if !a.counts(trust) {
		said.Attempt = 0
	}
	a.believe(now, trust, &said)
	return true
}

// beginStreak bounds how long answers may take that the client does not read. In
// between requests the server has no such bound.
func (c *conn) beginStreak(now time.Time, x *head) error {
	if c.streak != nil {
		return nil
	}
	c.began, c.streak = now, x
	return c.Conn.SetWriteDeadline(now.Add(2 * maxStreak))
}

// endStreak undoes beginStreak, before b is passed through. An empty line, which net/http
// accepts after a POST only, is spoilt: if a POST is the last that net/http has seen, it does
// not know of the requests since then.
func (c *conn) endStreak(b []byte) {
	if c.streak == nil {
		return
	}
	heads.Put(c.streak)
	c.streak = nil
	_ = c.Conn.SetWriteDeadline(time.Time{}) // if that fails, so does what the server writes
	if b[0] == '\r' || b[0] == '\n' {
		b[0] = 0
	}
}
