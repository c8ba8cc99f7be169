package spillhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/charging"
	"github.com/seed90641741/spillway/internal/final"
)

// response takes note of the status, and says "don't retry" where a call that was made for
// the request must not be repeated. Methods that the writer underneath may not
// have say so, as [http.ResponseController] does.
type response struct {
	http.ResponseWriter
	pausing

	late   charging.State // of what other goroutines of the handler do to the passage
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
	if r.blocks(len(p)) {
		r.suspend()
		defer r.resume()
	}
	return r.ResponseWriter.Write(p)
}

func (r *response) WriteString(s string) (int, error) {
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
	r.suspend()
	defer r.resume()
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// Flush implements [http.Flusher].
func (r *response) Flush() { _ = r.FlushError() } // who wants to know calls that

// response1 is a response of HTTP/1, whose connection can be taken over.
type response1 struct{ response }

// writer returns what the answer to r is written to. Only where that is HTTP/1 a
// connection can be taken over.
func (r *response1) writer(request *http.Request) http.ResponseWriter {
	if request.ProtoMajor == 1 {
		return r
	}
	return &r.response
}

// Hijack implements [http.Hijacker]. From then on work is unknown, so that
// nothing is.
func (r *response1) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := http.NewResponseController(r.ResponseWriter).Hijack()
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
