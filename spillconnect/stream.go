package spillconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
)

// WrapStreamingClient implements [connect.Interceptor]. A stream is throttled. The backend has
// accepted it when its first message is received; a head may also come before a rejection. It
// counts as in flight until it has ended: until Receive has returned an error, CloseResponse was
// called, or its context has ended. It is never retried.
func (c *Client) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		ctx, call := c.call(ctx, spec, nil)
		conn := next(ctx, spec)
		s := &clientStream{StreamingClientConn: conn, begun: make(chan struct{}), ended: make(chan error, 1), done: make(chan struct{})}
		admitted := make(chan error, 1)
		go func() {
			defer close(s.done)
			defer close(admitted)
			defer func() { s.panics = recover() }() // it goes on in the goroutine of the caller
			admitted <- c.pool.For(conn.Peer().Addr).Do(ctx, call, func(ctx context.Context, a *egress.Attempt) error {
				label(ctx, conn.RequestHeader(), a, c.external)
				admitted <- nil
				return s.wait(ctx, a)
			})
		}()
		err, decided := <-admitted
		if !decided {
			s.panicsOn()
		}
		s.rejected = errorOf(err)
		return s
	}
}

// A clientStream is a stream that reports its end.
type clientStream struct {
	connect.StreamingClientConn

	rejected error // by a policy of this process
	answered atomic.Bool
	begun    chan struct{} // closed when a message was received
	once     sync.Once
	ended    chan error    // receives the end
	done     chan struct{} // closed when the policies know of the end
	panics   any           // of code of the user that they have called, such as an Observer; done guards it
}

// panicsOn waits until the policies know of the end, and continues what panicked, once.
func (s *clientStream) panicsOn() {
	<-s.done
	if panics := s.panics; panics != nil {
		s.panics = nil
		panic(panics) //nolint:forbidigo // it goes on where the caller expects it
	}
}

// wait waits for the end of the stream, and returns what it means. A backend that has begun to
// answer has accepted the stream: what breaks then is no lack of capacity.
func (s *clientStream) wait(ctx context.Context, a *egress.Attempt) error {
	err := s.watch(ctx, a)
	failure := failureOf(ctx, err)
	if e, ok := errors.AsType[*attemptError](failure); ok {
		e.failure.Safety, e.failure.Unprocessed = fault.RetryUnsafe, false // what was sent is not kept
		if s.answered.Load() {
			e.failure.Overload = false
		}
	}
	return failure
}

// watch waits for the end of the stream, and reports to the policies that the answer begins.
func (s *clientStream) watch(ctx context.Context, a *egress.Attempt) (err error) {
	for begun := s.begun; ; {
		select {
		case <-begun:
			a.Accepted()
			begun = nil
			continue
		case err = <-s.ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if s.answered.Load() { // it may have ended at the same time
			a.Accepted()
		}
		return err
	}
}

func (s *clientStream) end(err error) {
	s.once.Do(func() {
		s.ended <- err
		s.panicsOn()
	})
}

// Send implements [connect.StreamingClientConn].
func (s *clientStream) Send(m any) error {
	if s.rejected != nil {
		return s.rejected
	}
	return s.StreamingClientConn.Send(m)
}

// Receive implements [connect.StreamingClientConn].
func (s *clientStream) Receive(m any) error {
	if s.rejected != nil {
		return s.rejected
	}
	err := s.StreamingClientConn.Receive(m)
	switch {
	case err == nil:
		if s.answered.CompareAndSwap(false, true) {
			close(s.begun)
		}
	case errors.Is(err, io.EOF):
		s.end(nil)
	default:
		s.end(err)
	}
	return err
}

// CloseRequest implements [connect.StreamingClientConn].
func (s *clientStream) CloseRequest() error {
	if s.rejected != nil {
		return nil //nolint:nilerr // Send and Receive report it
	}
	return s.StreamingClientConn.CloseRequest()
}

// CloseResponse implements [connect.StreamingClientConn].
func (s *clientStream) CloseResponse() error {
	if s.rejected != nil {
		return nil
	}
	defer s.end(nil)
	return s.StreamingClientConn.CloseResponse()
}

// ResponseHeader implements [connect.StreamingClientConn].
func (s *clientStream) ResponseHeader() http.Header {
	if s.rejected != nil {
		return http.Header{}
	}
	return s.StreamingClientConn.ResponseHeader()
}

// ResponseTrailer implements [connect.StreamingClientConn].
func (s *clientStream) ResponseTrailer() http.Header {
	if s.rejected != nil {
		return http.Header{}
	}
	return s.StreamingClientConn.ResponseTrailer()
}
