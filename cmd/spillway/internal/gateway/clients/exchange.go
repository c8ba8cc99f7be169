package clients

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// An Exchange is one request and its answer, as far as the client has a part in them: it
// sends a body, and receives an answer. The exchange knows when the client is waited for,
// and ends when that takes longer than the bounds allow. It is the [http.ResponseWriter]
// of the request, and as a [requestBody] its body.
type Exchange struct {
	http.ResponseWriter

	client  *clientConn          // nil in an explanation
	pool    atomic.Pointer[Pool] // nil until it has passed the gate
	slot    bool                 // it takes one there
	bounds  atomic.Pointer[Bounds]
	control *http.ResponseController
	cancel  context.CancelCauseFunc // nil without a body
	leave   context.CancelFunc      // ends an upgraded connection; nil if there can be none
	source  io.ReadCloser           // the body as it comes
	stream  atomic.Bool             // a call of gRPC, or an upgraded connection: it may be silent
	moved   atomic.Int64            // when the last byte moved, or the exchange began
	reads   flow
	writes  flow
	taken   atomic.Bool // the connection, by an upgrade
	resting atomic.Bool // the answer is a stream that has nothing to say
	untimed atomic.Bool // the answer is a stream that has ended the deadline of its request
	done    atomic.Bool // the body was read to its end
	closed  atomic.Bool // the body, by a reader that needs no more of it
	first   bool        // by HTTP/1.1
	former  bool        // by HTTP/1.0
	last    bool        // the connection ends after it
	memory  message.Account
	status  int   // of the answer; 0: it has none yet
	written int64 // bytes of its body

	mu       sync.Mutex
	ended    bool
	aborted  bool
	hijacked net.Conn // nil: the connection is the server's
}

// NewExchange returns the exchange of a request, and the request to continue with.
// [Exchange.End] must be called.
func NewExchange(w http.ResponseWriter, r *http.Request, b *Bounds) (*Exchange, *http.Request) {
	x := &Exchange{ResponseWriter: w, client: clientOf(r), control: http.NewResponseController(w)}
	x.stream.Store(message.IsGRPC(r))
	x.first, x.former = r.ProtoMajor == 1, !r.ProtoAtLeast(1, 1)
	// RFC 9112, section 6.1: after a chunked request with a Content-Length the connection must end, as the client that
	// sent it may have taken what follows its length for another request.
	x.last = x.first && len(r.TransferEncoding) > 0 && x.client != nil && x.client.wire.lengths.Load()
	x.bounds.Store(b)
	x.moved.Store(monotonic())
	if x.first && r.Header["Upgrade"] != nil {
		var ctx context.Context
		ctx, x.leave = context.WithCancel(r.Context())
		r = r.WithContext(ctx)
	}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 { // by HTTP/2, a request without a body has one, too
		x.done.Store(true)
		return x, r
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	x.cancel, x.source = cancel, r.Body
	r = r.WithContext(message.WithAccount(ctx, &x.memory))
	r.Body = (*requestBody)(x)
	return x, r
}

// Bound changes the bounds.
func (x *Exchange) Bound(b *Bounds) { x.bounds.Store(b) }

// LimitBody limits the length of the body. A longer body is an error of the client.
func (x *Exchange) LimitBody(most int64) {
	if x.source != nil {
		x.source = http.MaxBytesReader(x.ResponseWriter, x.source, most)
	}
}

// Answer returns the status of the answer, 0 without one, and how many bytes of its body were written.
func (x *Exchange) Answer() (status int, bytes int64) { return x.status, x.written }

// Body returns the account of the request's body.
func (x *Exchange) Body() *message.Account { return &x.memory }

// Whole reports whether the whole body has arrived.
func (x *Exchange) Whole() bool { return x.done.Load() }

// Network names the address of the client where a customer is expected, empty if it is not
// known. No customer has such a name.
func (x *Exchange) Network() string {
	if x.client == nil {
		return ""
	}
	return "\x00" + x.client.prefix.String()
}

// Untimed says that the answer is a stream that may last for longer than the deadline of its request. Its idle timeout bounds it.
func (x *Exchange) Untimed() { x.untimed.Store(true) }

// A requestBody is the body of an exchange.
type requestBody Exchange

func (b *requestBody) Read(p []byte) (int, error) {
	x := (*Exchange)(b)
	x.reads.begin(monotonic())
	x.memory.Await()
	n, err := x.source.Read(p)
	x.memory.Came()
	now := monotonic()
	x.reads.end(now, n, 0, x.bounds.Load().rate)
	if n > 0 {
		x.moved.Store(now)
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		x.done.Store(true)
	default:
		failed := &BodyError{err}
		if !x.closed.Load() {
			x.cancel(failed) // what the client wanted is given up: no failure of the upstream
		}
		err = failed
	}
	return n, err
}

func (b *requestBody) Close() error {
	b.closed.Store(true)
	return b.source.Close()
}

// WriteHeader implements [http.ResponseWriter]. It says if the connection ends.
func (x *Exchange) WriteHeader(status int) {
	if status >= http.StatusOK && (x.last || x.client != nil && x.client.owner.draining.Load() > 0) {
		x.Header().Set("Connection", "close")
	}
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (x *Exchange) Write(p []byte) (int, error) {
	x.status = cmp.Or(x.status, http.StatusOK)
	x.writes.begin(monotonic())
	n, err := x.ResponseWriter.Write(p)
	x.written += int64(n)
	x.wrote(n, writeBuffer)
	return n, err
}

// FlushError is for [http.ResponseController].
func (x *Exchange) FlushError() error {
	x.writes.begin(monotonic())
	err := x.control.Flush()
	x.wrote(0, 0)
	return err
}

func (x *Exchange) wrote(n, buffered int) {
	now := monotonic()
	x.writes.end(now, n, buffered, x.bounds.Load().rate)
	x.moved.Store(now)
}

// Unwrap is for [http.ResponseController].
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Hijack implements [http.Hijacker]. From then on the idle timeout of streams
// applies.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := x.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hijacked, x.status = c, http.StatusSwitchingProtocols
	x.moved.Store(monotonic())
	x.stream.Store(true)
	x.taken.Store(true)
	return &upgraded{c, buffered.Reader, x}, buffered, nil
}

// Why an exchange was ended. Both are timeouts.
var (
	errSlow    = fmt.Errorf("the client was too slow: %w", os.ErrDeadlineExceeded)
	errEvicted = fmt.Errorf("the client was waited for while there was no room for others: %w", os.ErrDeadlineExceeded)
)

func (x *Exchange) overdue(now int64) bool {
	b := x.bounds.Load()
	exceeded := func(d, bound time.Duration) bool { return bound > 0 && d > bound }
	switch {
	case !x.waits():
		return false
	case x.stream.Load() || x.resting.Load():
		return (x.taken.Load() || x.untimed.Load() || !x.done.Load() || x.writes.waits()) && exceeded(time.Duration(now-x.moved.Load()), b.idle)
	default:
		return x.reads.waits() && (exceeded(x.reads.overdrawn(now), b.body) || exceeded(x.reads.waited(now), b.total)) ||
			x.writes.waits() && exceeded(x.writes.overdrawn(now), b.answer)
	}
}

// waits reports whether the exchange waits for its client, or is an idle stream. An upgraded
// connection always counts as waiting.
func (x *Exchange) waits() bool {
	return x.taken.Load() || x.resting.Load() || x.reads.waits() || x.writes.waits()
}

// waiting returns how long the exchange has waited for the client in excess, or how long a
// stream has been idle. It is 0 if the exchange does not wait for its client.
func (x *Exchange) waiting(now int64) time.Duration {
	switch {
	case !x.waits():
		return 0
	case x.stream.Load() || x.resting.Load():
		return max(1, time.Duration(now-x.moved.Load()))
	default:
		return max(1, x.reads.stalled(now), x.writes.stalled(now))
	}
}

// Until ends the exchange if the deadline of a context passes while the body is waited for, until stop is called. A request that
// is sent on does not end before the read of its body does.
func (x *Exchange) Until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		switch {
		case !errors.Is(ctx.Err(), context.DeadlineExceeded) || !x.reads.waits():
		case x.stream.Load():
			x.endBody()
		default:
			x.abort(errSlow)
		}
	})
}

// endBody ends the body of a call of gRPC. Its answer may go on, to say with a status that the deadline has passed.
func (x *Exchange) endBody() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || x.hijacked != nil || x.cancel == nil {
		return
	}
	x.cancel(&BodyError{errSlow})
	_ = x.control.SetReadDeadline(past) // as in abort
}

// abort ends the exchange: reads and writes that wait for the client fail. While the body is
// read, the client still gets an answer.
func (x *Exchange) abort(why error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	if x.hijacked != nil {
		_ = hangUp(x.hijacked) // its reader and its writer get an error
		if x.leave != nil {
			x.leave() // where the client has closed its side, nobody reads
		}
		return
	}
	if x.writes.waits() || x.resting.Load() || x.aborted {
		_ = x.control.SetWriteDeadline(past)
	}
	if x.resting.Load() && x.cancel == nil {
		if !x.first {
			return // its stream was reset
		}
		_ = hangUp(x.client.conn) // as above
	}
	x.aborted = true
	if x.cancel != nil {
		x.cancel(&BodyError{why})
		_ = x.control.SetReadDeadline(past) // a connection that cannot do it has no reader to wake
	}
}

// unreadTime is how long net/http may read the rest of an unread body: enough for bytes that
// were sent together with the headers.
const unreadTime = 50 * time.Millisecond

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// End must be called when the handler has returned.
func (x *Exchange) End() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	x.memory.Close()
	if x.cancel != nil {
		x.cancel(nil)
	}
	if x.leave != nil {
		x.leave()
	}
	if x.hijacked == nil && !x.done.Load() && x.first {
		// net/http reads on what is left of a short body, and keeps the connection if that
		// comes at once. One of HTTP/2 does not have to be read on.
		_ = x.control.SetReadDeadline(time.Now().Add(unreadTime))
	}
}

// A BodyError is an error of a client that failed to send its body.
type BodyError struct{ error }

func (e *BodyError) Unwrap() error { return e.error }

// Error says whose fault it is.
func (e *BodyError) Error() string { return "the body of the request: " + e.error.Error() }

// epoch is the zero of all times of this package. It is before the year 2000, in which virtual
// time begins, so that all times are positive.
var epoch = time.Now().Add(-50 * 365 * 24 * time.Hour)

func monotonic() int64 { return int64(time.Since(epoch)) }
