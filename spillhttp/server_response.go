package spillhttp

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/charging"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/idle"
)

// response takes note of the status, and says "don't retry" where a call that was made for
// the request must not be repeated. Methods that the writer underneath may not
// have say so, as [http.ResponseController] does.
type response struct {
	http.ResponseWriter
	pausing

	events *idle.Stream   // nil: nothing was flushed
	late   charging.State // of what other goroutines of the handler do to the slot
	final  final.Mark     // set when a call for the request must not be repeated above
	code   int16          // 0 as long as none was set
	unsent int16          // bytes that were written since all was sent, at most one more than unblocked
}

func (r *response) WriteHeader(code int) {
	if r.code == 0 && (code >= http.StatusOK || code == http.StatusSwitchingProtocols) {
		r.code = int16(code)
		if r.final.IsSet() {
			dontRetry(r.Header(), code)
		}
	}
	r.ResponseWriter.WriteHeader(code)
}

// dontRetry makes an answer with a status and the header h say "don't retry", unless it is
// a success. An answer that a handler has copied from below may say the opposite: that was
// for this layer. A time to come back stays: for clients that do not know the rest, late is better.
func dontRetry(h http.Header, status int) {
	switch {
	case status >= http.StatusInternalServerError, status == http.StatusRequestTimeout,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		delete(h, headerStripe)
		delete(h, headerNack)
		h[headerShouldRetry] = valueFalse
	case status == http.StatusOK && first(h, headerGRPCStatus) != "" && first(h, headerGRPCStatus) != "0":
		h[headerGRPCPushback] = valueNoRetry
	default:
		return
	}
	if fault.ParseScope(first(h, headerScope)) == fault.ScopeTask {
		delete(h, headerScope) // it is not this task
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.wake()
	if r.blocks(len(p)) {
		r.suspend()
		defer r.resume()
	}
	return r.ResponseWriter.Write(p)
}

func (r *response) WriteString(s string) (int, error) {
	r.wake()
	if r.blocks(len(s)) {
		r.suspend()
		defer r.resume()
	}
	return io.WriteString(r.ResponseWriter, s)
}

// begin notes that what is written implies a status.
func (r *response) begin() {
	if r.code == 0 {
		r.code = http.StatusOK
	}
}

// Unwrap is for [http.ResponseController].
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// FlushError is for [http.ResponseController].
func (r *response) FlushError() error {
	r.begin()
	r.unsent = 0
	r.answer()
	r.wake()
	r.suspend()
	defer func() {
		r.resume()
		r.rest()
	}()
	return r.control().Flush()
}

// answer reports that the answer begins before the handler has returned.
func (r *response) answer() {
	if r.slot != nil && r.events == nil { // else it has begun
		r.slot.Answer(r.clock.Now())
	}
}

// rest reports that the answer so far was sent. A handler that writes nothing for a while then waits for an event.
func (r *response) rest() {
	if r.slot == nil {
		return
	}
	if r.events == nil {
		r.events = new(idle.Stream)
	}
	r.events.Rest(r.slot)
}

// wake reports that the handler writes.
func (r *response) wake() {
	if r.events != nil {
		r.events.Wake()
	}
}

// returned reports that the handler has returned.
func (r *response) returned() {
	if r.events != nil {
		r.events.End()
	}
}

// Flush implements [http.Flusher].
func (r *response) Flush() { _ = r.FlushError() } // who wants to know calls that

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex call the writer underneath. Handlers that know no
// [http.ResponseController] look for them in the writer itself.
func (r *response) SetReadDeadline(t time.Time) error  { return r.control().SetReadDeadline(t) }
func (r *response) SetWriteDeadline(t time.Time) error { return r.control().SetWriteDeadline(t) }
func (r *response) EnableFullDuplex() error            { return r.control().EnableFullDuplex() }

func (r *response) control() *http.ResponseController {
	return http.NewResponseController(r.ResponseWriter)
}

// CloseNotify implements http.CloseNotifier, which is deprecated and which web frameworks still need. Where the
// writer underneath has no such method, the end of the context of the request says so.
func (r *response) CloseNotify() <-chan bool {
	if n, ok := underneath[interface{ CloseNotify() <-chan bool }](r.ResponseWriter); ok {
		return n.CloseNotify()
	}
	gone := make(chan bool, 1)
	if r.slot != nil {
		context.AfterFunc(r.slot.Context(), func() { gone <- true })
	}
	return gone
}

// underneath returns w, or a writer that it leads to, if it also implements T.
func underneath[T any](w http.ResponseWriter) (is T, ok bool) {
	for {
		if is, ok = w.(T); ok {
			return is, true
		}
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return is, false
		}
		w = wrapper.Unwrap()
	}
}

// response1 is a response of HTTP/1, whose connection can be taken over.
type response1 struct{ response }

// response2 is a response of HTTP/2, which can push.
type response2 struct{ *response }

// writer returns what the answer to r is written to. It has the methods that the writer of net/http has for the protocol.
func (r *response1) writer(request *http.Request) http.ResponseWriter {
	switch request.ProtoMajor {
	case 1:
		return r
	case 2:
		return response2{&r.response}
	default:
		return &r.response
	}
}

// Push implements [http.Pusher].
func (r response2) Push(target string, opts *http.PushOptions) error {
	if p, ok := underneath[http.Pusher](r.ResponseWriter); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Hijack implements [http.Hijacker]. From then on work is unknown, so that
// nothing is.
func (r *response1) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := r.control().Hijack()
	if err == nil {
		r.answer()
		r.suspend()
	}
	return c, buffered, err
}

// ReadFrom implements [io.ReaderFrom]. Only a file is never waited for: the kernel can send it by
// itself.
func (r *response1) ReadFrom(src io.Reader) (int64, error) {
	r.begin()
	r.wake()
	from := src
	if limited, ok := src.(*io.LimitedReader); ok {
		from = limited.R
	}
	if _, ok := from.(*os.File); ok {
		r.suspend()
		defer r.resume()
		return io.Copy(r.ResponseWriter, src)
	}
	return io.Copy(struct{ io.Writer }{&r.response}, src)
}
