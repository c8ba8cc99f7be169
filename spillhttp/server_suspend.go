package spillhttp

import (
	"io"
	"net/http"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/clock"
)

// A pausing reports when an admitted request waits for its client. slot is nil for requests that
// bypass the Handler.
type pausing struct {
	slot  *ingress.Slot
	clock *clock.Clock
}

func (p *pausing) suspend() {
	if p.slot != nil {
		p.slot.Suspend(p.clock.Now())
	}
}

func (p *pausing) resume() {
	if p.slot != nil {
		p.slot.Resume(p.clock.Now())
	}
}

// A requestBody is the body of a request that may still be arriving, so reading it may wait for the
// client.
type requestBody struct {
	io.ReadCloser
	pausing
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.suspend()
	defer b.resume()
	return b.ReadCloser.Read(p)
}

// Close implements [io.Closer]. net/http may read the rest of the body in it.
func (b *requestBody) Close() error {
	b.suspend()
	defer b.resume()
	return b.ReadCloser.Close()
}

// streamed reports whether a request has a body that can be read only once, and that may still be
// arriving. A body with GetBody is in memory.
func streamed(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.GetBody == nil
}

// Suspend says that the request that w answers does no work until [Resume]. It is for a handler
// that waits for an event which has nothing to do with how busy the server is, as in a long poll or
// between two events of a stream. Until then the request does not count as in flight for the
// shedder, and the time is not part of its latency. Each Suspend needs one Resume.
//
// Between two events of a stream no call is needed if each is flushed: 2 s after a flush the
// [Handler] suspends the request until the handler writes again. No call is needed either while the
// body of a request is read, while an answer is written, or after the connection was hijacked: the
// Handler suspends the request then.
//
// w is the http.ResponseWriter of the handler, or a writer that leads to it by its Unwrap methods.
// With any other writer, and after the handler has returned, Suspend does nothing.
func Suspend(w http.ResponseWriter) {
	if r := responseOf(w); r != nil && r.late.Begin() {
		r.suspend()
	}
}

// Resume ends one [Suspend]. It never waits.
func Resume(w http.ResponseWriter) {
	if r := responseOf(w); r != nil && r.late.Begin() {
		r.resume()
	}
}

// responseOf returns the response of the Handler below w, or nil.
func responseOf(w http.ResponseWriter) *response {
	for {
		switch x := w.(type) {
		case *response1:
			return &x.response
		case response2:
			return x.response
		case *response:
			return x
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return nil
		}
	}
}

// unblocked is how many bytes net/http buffers before it writes to a connection: the size of its
// smallest buffer, that of chunks. Writing a shorter answer never waits for the client.
const unblocked = 2048

// blocks records that n bytes are written, and reports whether the write may wait for the client.
func (r *response) blocks(n int) bool {
	r.begin()
	r.unsent = int16(min(int64(r.unsent)+int64(n), unblocked+1))
	return r.unsent > unblocked
}
