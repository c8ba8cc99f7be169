package spillhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// A bodyAhead is a short body that is read while its request waits. By HTTP/1, net/http notices that a client has left only when
// all of the body was read: without this, a request with a body would stay in the queue.
type bodyAhead struct {
	context.Context //nolint:containedctx // of the request: this is the context that it waits with

	from io.ReadCloser
	read bytes.Reader  // what was read
	err  error         // after that; nil: the rest, if there is any, has not been read
	done chan struct{} // closed when it was read; nil: it is not
}

// aheadOf returns the body of r to wait with, or nil if r is not to be read before it is served: its body is long, or sent only
// after the decision, or no request waits now.
func (h *Handler) aheadOf(r *http.Request) *bodyAhead {
	if r.ProtoMajor != 1 || r.ContentLength <= 0 || r.ContentLength > drainBytes || !streamed(r) || r.Header["Expect"] != nil ||
		h.looks.Load() <= 0 && h.ingress.Waiting() == 0 {
		return nil
	}
	return &bodyAhead{Context: r.Context(), from: r.Body}
}

// Done implements [context.Context]. The request asks for it when it is about to wait.
func (b *bodyAhead) Done() <-chan struct{} {
	if b.done == nil {
		b.done = make(chan struct{})
		go b.fill()
	}
	return b.Context.Done()
}

// fill reads the body. What a decoder in front makes of it may be longer.
func (b *bodyAhead) fill() {
	defer close(b.done)
	text, err := io.ReadAll(io.LimitReader(b.from, drainBytes))
	b.err = err
	b.read.Reset(text)
}

// join waits until the read has ended. For a nil bodyAhead it does nothing.
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
