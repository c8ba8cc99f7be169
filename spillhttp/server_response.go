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

// response records the status of an answer. It adds "don't retry" if a call that was made for the
// request must not be repeated. Methods that the underlying writer lacks return an error that says
// so, as in [http.ResponseController].
type response struct {
	http.ResponseWriter
	pausing

	events *idle.Stream   // nil: nothing was flushed
	late   charging.State // guards the slot against late calls from other goroutines of the handler
	final  final.Mark     // set if a call that was made for the request must not be repeated
	code   int16          // status of the answer; 0 means none yet
	unsent int16          // bytes written that may not be sent yet, at most unblocked + 1
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

// dontRetry makes an answer with this status and header h say "don't retry", unless it is a
// success. The handler may have copied the opposite from an answer to its own call: that was for
// this layer only. Retry-After stays: for clients that do not know the other headers, a late retry
// is better.
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
		delete(h, headerScope) // another task failed, not this one
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

// begin sets the status 200, unless there is one: a write implies it.
func (r *response) begin() {
	if r.code == 0 {
		r.code = http.StatusOK
	}
}

// Unwrap serves [http.ResponseController].
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// FlushError serves [http.ResponseController].
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

// answer reports to the policies that the answer begins before the handler has returned.
func (r *response) answer() {
	if r.slot != nil && r.events == nil { // otherwise it has begun before
		r.slot.Answer(r.clock.Now())
	}
}

// rest records that everything written was sent. If the handler then writes nothing for a while,
// the request counts as waiting for an event.
func (r *response) rest() {
	if r.slot == nil {
		return
	}
	if r.events == nil {
		r.events = new(idle.Stream)
	}
	r.events.Rest(r.slot)
}

// wake records that the handler writes.
func (r *response) wake() {
	if r.events != nil {
		r.events.Wake()
	}
}

// returned records that the handler has returned.
func (r *response) returned() {
	if r.events != nil {
		r.events.End()
	}
}

// Flush implements [http.Flusher].
func (r *response) Flush() { _ = r.FlushError() } // use FlushError to get the error

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex call the underlying writer. Some handlers
// do not use [http.ResponseController], and look for these methods in the writer itself.
func (r *response) SetReadDeadline(t time.Time) error  { return r.control().SetReadDeadline(t) }
func (r *response) SetWriteDeadline(t time.Time) error { return r.control().SetWriteDeadline(t) }
func (r *response) EnableFullDuplex() error            { return r.control().EnableFullDuplex() }

func (r *response) control() *http.ResponseController {
	return http.NewResponseController(r.ResponseWriter)
}

// CloseNotify implements http.CloseNotifier, which is deprecated, but still needed by web
// frameworks. If the underlying writer lacks the method, the channel reports the end of the
// request's context.
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

// underneath returns w if it implements T, or the first writer below it that does.
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

// response1 is the response of HTTP/1, whose connection can be hijacked.
type response1 struct{ response }

// response2 is the response of HTTP/2, which can push.
type response2 struct{ *response }

// writer returns the writer for the next handler. It has the same optional methods as the writer of
// net/http for the protocol of the request.
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

// Hijack implements [http.Hijacker]. From then on the request counts as doing no work, because what
// the handler does with the connection is unknown.
func (r *response1) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := r.control().Hijack()
	if err == nil {
		r.answer()
		r.suspend()
	}
	return c, buffered, err
}

// ReadFrom implements [io.ReaderFrom]. The underlying writer reads only from a file, which the
// kernel can send by itself and which is never waited for.
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
