package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// watched is the body of a request, whose client must not fall silent while it is
// read, nor send too much. It is read by one goroutine, and asked by another.
type watched struct {
	io.ReadCloser
	control *http.ResponseController
	cancel  context.CancelCauseFunc
	timeout time.Duration // not above zero: none
	born    time.Time
	armed   atomic.Int64 // when the deadline was set, in nanoseconds since born; 0: it is not
	ended   atomic.Bool
	closed  atomic.Bool
}

// watchedKey is that of the watched body in the context of its request.
type watchedKey struct{}

// watch puts the bounds of the listener on the body of a request, and returns the
// request to go on with. There is no body if there is nothing to watch.
func (s *settings) watch(w http.ResponseWriter, r *http.Request) (*http.Request, *watched) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	b := &watched{ReadCloser: r.Body, control: http.NewResponseController(w), timeout: s.config.BodyTimeout, born: time.Now()}
	if isGRPC(r) {
		b.timeout = -1 // a stream may be silent; pings find out whether the peer is there
	}
	if m := s.config.MaxBodyBytes; m > 0 {
		b.ReadCloser = http.MaxBytesReader(w, r.Body, m)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	b.cancel = cancel
	r = r.WithContext(context.WithValue(ctx, watchedKey{}, b))
	r.Body = b
	return r, b
}

// Read implements [io.Reader].
func (b *watched) Read(p []byte) (int, error) {
	b.arm()
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
		if b.armed.Swap(0) != 0 { // what comes next is not the body
			_ = b.control.SetReadDeadline(time.Time{}) // a connection that is gone needs none
		}
	default:
		failed := &bodyError{err}
		if !b.closed.Load() { // by whoever has enough of it, as there is an answer
			b.cancel(failed) // what the client wanted is given up: no failure of the upstream
		}
		err = failed
	}
	return n, err
}

// Close implements [io.Closer].
func (b *watched) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// arm sets the deadline anew, if it is time to.
func (b *watched) arm() {
	if b.timeout <= 0 || b.ended.Load() {
		return
	}
	now := max(time.Since(b.born), 1)
	if armed := time.Duration(b.armed.Load()); armed == 0 || now-armed > b.timeout/8 {
		b.armed.Store(int64(now))
		_ = b.control.SetReadDeadline(b.born.Add(now + b.timeout)) // without one it goes on as before
	}
}

// overdue reports whether the client has been silent for too long. Its context may
// end before the error has come around.
func (b *watched) overdue() bool {
	armed := time.Duration(b.armed.Load())
	return armed != 0 && !b.ended.Load() && time.Since(b.born) >= armed+b.timeout
}

// end ends the request, and bounds what net/http still reads of a body that nobody has
// read to the end.
func (b *watched) end() {
	b.cancel(nil)
	if !b.ended.Load() && b.timeout > 0 {
		_ = b.control.SetReadDeadline(time.Now().Add(b.timeout)) // as above
	}
}

// bodyError is one of the client, which could not send its body.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

// Error says whose fault it is.
func (e *bodyError) Error() string { return fmt.Sprintf("the body of the request: %v", e.error) }
