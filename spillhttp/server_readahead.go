package spillhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// A bodyAhead is a short body that is read while its request waits. Over HTTP/1, net/http notices
// that a client has left only when the whole body was read. Without bodyAhead, the request of a
// client that has left would stay in the waiting queue.
type bodyAhead struct {
	context.Context //nolint:containedctx // of the request: this is the context that it waits with

	from io.ReadCloser
	read bytes.Reader  // the part that was read ahead
	err  error         // error of reading ahead; nil: Read goes on with from
	done chan struct{} // closed after reading ahead; nil: nothing is read ahead
}

// aheadOf returns the body of r to be read while r waits. It returns nil if the body is long, is
// sent only after the decision (Expect), or cannot matter because no request waits now.
func (h *Handler) aheadOf(r *http.Request) *bodyAhead {
	if r.ProtoMajor != 1 || r.ContentLength <= 0 || r.ContentLength > drainBytes || !streamed(r) || r.Header["Expect"] != nil ||
		h.looks.Load() <= 0 && h.ingress.Waiting() == 0 {
		return nil
	}
	return &bodyAhead{Context: r.Context(), from: r.Body}
}

// Done implements [context.Context]. It starts reading, because a request calls it when it is about
// to wait.
func (b *bodyAhead) Done() <-chan struct{} {
	if b.done == nil {
		b.done = make(chan struct{})
		go b.fill()
	}
	return b.Context.Done()
}

// fill reads the body ahead, up to a limit: a decoder in front may make it longer than its
// Content-Length.
func (b *bodyAhead) fill() {
	defer close(b.done)
	text, err := io.ReadAll(io.LimitReader(b.from, drainBytes))
	b.err = err
	b.read.Reset(text)
}

// join waits until reading ahead has ended. It does nothing for a nil bodyAhead.
func (b *bodyAhead) join() {
	if b != nil && b.done != nil {
		<-b.done
	}
}

// Read implements [io.Reader].
func (b *bodyAhead) Read(p []byte) (int, error) {
	if b.done == nil {
		return b.from.Read(p)
	}
	<-b.done
	switch {
	case b.read.Len() > 0:
		return b.read.Read(p)
	case b.err != nil:
		return 0, b.err
	default:
		return b.from.Read(p)
	}
}

// Close implements [io.Closer].
func (b *bodyAhead) Close() error { return b.from.Close() }
