package spillhttp

import (
	"io"
	"net/http"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/clock"
)

// A pausing reports when a request in service waits for its client. It can be nil, for
// requests that bypass the Handler.
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

// A requestBody is the body of a request that may still be arriving. Reading it may wait for
// the client.
type requestBody struct {
	io.ReadCloser
	pausing
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.suspend()
	defer b.resume()
	return b.ReadCloser.Read(p)
}

// Close implements [io.Closer]. net/http may read on.
func (b *requestBody) Close() error {
	b.suspend()
	defer b.resume()
	return b.ReadCloser.Close()
}

// streamed reports whether a request has a body that can be read once only, and of which some may still be
// arriving. A body with GetBody was read before.
func streamed(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.GetBody == nil
}

// Suspend says that the request that w answers does no work until [Resume]: it waits for
// an event that has nothing to do with how busy the server is, as in a long poll or
// between two events of a stream. Until as many calls of Resume it does not count as in
// flight for the shedder, and the time does not count as latency.
//
// There is no need to call it between two events of a stream if each is flushed: 2 s after a flush the Handler does, until
// the handler writes again.
//
// Nor is there for the client: while the body of a request is read, an
// answer written, or a connection taken over, the [Handler] does. w is the
// http.ResponseWriter of the handler, or one with an Unwrap method that leads to it;
// with any other, and after the handler has returned, Suspend does nothing.
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

// responseOf finds the response of a Handler, or returns nil.
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

// unblocked is how many bytes net/http keeps before it writes anything to a connection:
// the smallest of its buffers, that of chunks. No write of a shorter answer waits for a client.
const unblocked = 2048

// blocks takes in that n bytes are written, and reports whether that may wait for the
// client.
func (r *response) blocks(n int) bool {
	r.begin()
	r.unsent = int16(min(int64(r.unsent)+int64(n), unblocked+1))
	return r.unsent > unblocked
}
