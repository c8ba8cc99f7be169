package spillgrpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
)

// stream implements [grpc.StreamClientInterceptor].
func (c *Client) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	opts, finish := withoutFinish(opts)
	s := &clientStream{
		client: c, ctx: adopt(ctx), desc: desc, cc: cc, method: method, streamer: streamer,
		opts: opts, finish: finish, changed: make(chan struct{}),
	}
	go s.run()
	if s.next(nil) == nil {
		return nil, s.err
	}
	return s, nil
}

// A clientStream is a streaming call, with all its attempts. An attempt lasts as
// long as its stream, so that the policies learn how that ended and it counts as
// in flight until then. The attempts are made by a goroutine of their own, which
// ends with the call. Until something was received, what the caller has sent is
// kept, so that it can be sent again.
type clientStream struct {
	client   *Client
	ctx      context.Context //nolint:containedctx // of the call, as in the streams of grpc
	desc     *grpc.StreamDesc
	cc       *grpc.ClientConn
	method   string
	streamer grpc.Streamer
	opts     []grpc.CallOption
	finish   finishers

	mu        sync.Mutex
	current   *attemptStream // nil while there is none; stays once committed
	last      *attemptStream // the latest there was
	changed   chan struct{}  // closed when current or ended change
	sent      replay
	committed bool // there will be no other attempt
	ended     bool
	err       error // of the call, once it has ended
	panics    any   // what ended the call; it goes on in the goroutine of the caller
}

// attemptStream is the stream of one attempt.
type attemptStream struct {
	grpc.ClientStream

	begun    chan struct{} // closed when the caller has received the head of the answer, or a message
	answered atomic.Bool   // that is so
	done     chan error    // receives its end
	finished atomic.Bool   // grpc has ended it
}

// SendMsg implements [grpc.ClientStream]. If the codec panics the stream ends, as the caller does not go on with it.
func (a *attemptStream) SendMsg(m any) error {
	returned := false
	defer func() { a.endUnless(returned) }()
	err := a.ClientStream.SendMsg(m)
	returned = true
	return err
}

// RecvMsg implements [grpc.ClientStream], likewise.
func (a *attemptStream) RecvMsg(m any) error {
	returned := false
	defer func() { a.endUnless(returned) }()
	err := a.ClientStream.RecvMsg(m)
	returned = true
	return err
}

func (a *attemptStream) endUnless(returned bool) {
	if !returned {
		a.tell(status.Error(codes.Canceled, "spillgrpc: a codec or an interceptor has panicked"))
	}
}

// finish is called by grpc when the stream has ended.
func (a *attemptStream) finish(err error) {
	a.finished.Store(true)
	a.tell(err)
}

// tell says that the stream has ended. Who says so first counts: mostly grpc,
// but an interceptor underneath may have ended it for the caller only.
func (a *attemptStream) tell(err error) {
	select {
	case a.done <- err:
	default:
	}
}

// wait waits for the end of the stream, and reports to the policies that the answer begins.
func (a *attemptStream) wait(ctx context.Context, of *egress.Attempt) error {
	for begun := a.begun; ; {
		select {
		case <-begun:
			of.Accepted()
			begun = nil
		case err := <-a.done:
			return err
		case <-ctx.Done(): // an interceptor may have kept the option by which grpc tells
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// began reports whether the answer has begun. The stream has ended.
func (a *attemptStream) began() bool {
	if a.answered.Load() || !a.finished.Load() { // if grpc has not ended it, Header may wait
		return a.answered.Load()
	}
	header, _ := a.Header()
	return header != nil
}

// run makes the call. What panics in it is code of the user, such as an interceptor, a codec or an Observer. The caller
// can recover only in its own goroutine.
func (s *clientStream) run() {
	err := status.Error(codes.Internal, "spillgrpc: the call has panicked") // or its goroutine was ended
	defer func() { s.end(err, recover()) }()
	err = s.attempts()
}

// attempts makes the attempts, and returns the error of the call.
func (s *clientStream) attempts() error {
	var answer error // of the backend, that was no failure
	err := s.client.pool.For(s.cc.Target()).Do(s.ctx, s.client.call(s.ctx, s.method), func(ctx context.Context, a *egress.Attempt) (err error) {
		answer, err = s.attempt(ctx, a)
		return err
	})
	if err == nil {
		err = answer
	} else {
		err = errorOf(err)
	}
	s.finish.tell(err)
	return err
}

// attempt makes one attempt, which lasts until its stream has ended.
func (s *clientStream) attempt(ctx context.Context, a *egress.Attempt) (answer, failure error) {
	a.Use(s.cc.Target())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	as := &attemptStream{begun: make(chan struct{}), done: make(chan error, 1)}
	opts := slices.Concat(s.opts, []grpc.CallOption{grpc.OnFinish(as.finish)})
	var err error
	if as.ClientStream, err = s.streamer(dress(ctx, a.Task(), a.Number, s.client.external), s.desc, s.cc, s.method, opts...); err != nil {
		return s.judge(err, nil, nil)
	}
	s.open(as)
	err = as.wait(ctx, a)
	s.shut()
	var trailer metadata.MD
	if as.finished.Load() {
		trailer = as.Trailer()
		listenToAdvice(a, trailer, s.client.external)
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil, nil
	}
	if as.began() {
		a.Accepted()
	}
	return s.judge(err, orEmpty(trailer), as)
}

// orEmpty returns md, or empty metadata if md is nil.
func orEmpty(md metadata.MD) metadata.MD {
	if md == nil {
		return metadata.MD{}
	}
	return md
}

// judge returns what the end of an attempt means. It is final if the backend has, or may
// have, begun to answer, or what was sent is no longer kept. A backend that has begun has accepted
// the call: what breaks then is no lack of capacity. as is nil if there was no stream.
func (s *clientStream) judge(err error, trailer metadata.MD, as *attemptStream) (answer, failure error) {
	failure = judge(s.ctx, err, trailer, s.client.safe(s.method))
	s.client.drops.add(failure)
	if failure == nil {
		return err, nil
	}
	f, ok := errors.AsType[*attemptError](failure)
	if !ok {
		return nil, failure
	}
	begun := as != nil && as.began()
	if begun {
		f.failure.Overload = false
	}
	if begun || as != nil && !as.finished.Load() || s.final() {
		f.failure.Safety, f.failure.Unprocessed = fault.RetryUnsafe, false
	}
	return nil, failure
}

// open sends what was sent on earlier streams, and makes as that of the call.
func (s *clientStream) open(as *attemptStream) {
	for from := 0; ; {
		s.mu.Lock()
		more := s.sent.messages[from:]
		if len(more) == 0 {
			break
		}
		s.mu.Unlock()
		for _, m := range more {
			if as.SendMsg(m) != nil {
				break // who receives learns why
			}
		}
		from += len(more)
	}
	if s.sent.closed {
		_ = as.CloseSend() // which never fails
	}
	s.current, s.last = as, as
	s.change()
	s.mu.Unlock()
}

// shut takes the stream of the call away, as there may be another.
func (s *clientStream) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.committed {
		s.current = nil
	}
}

func (s *clientStream) end(err error, panics any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.err, s.panics = true, err, panics
	s.commit()
	s.change()
}

// change wakes all who wait for a change; s.mu is held.
func (s *clientStream) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// commit gives up the means for another attempt; s.mu is held.
func (s *clientStream) commit() { s.committed, s.sent.messages = true, nil }

// received commits the call to the attempt that has received something.
func (s *clientStream) received(as *attemptStream) {
	if !as.answered.CompareAndSwap(false, true) {
		return
	}
	close(as.begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit()
}

func (s *clientStream) final() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// next waits for a stream other than old, and returns it, or nil if the call has
// ended instead. If a panic has ended the call, it goes on here, once.
func (s *clientStream) next(old *attemptStream) *attemptStream {
	for {
		s.mu.Lock()
		as, ended, changed := s.current, s.ended, s.changed
		s.mu.Unlock()
		switch {
		case as != nil && as != old:
			return as
		case ended:
			s.panicsOn()
			return nil
		}
		<-changed
	}
}

// panicsOn continues the panic that has ended the call, if the caller has not received it yet.
func (s *clientStream) panicsOn() {
	s.mu.Lock()
	panics := s.panics
	s.panics = nil
	s.mu.Unlock()
	if panics != nil {
		panic(panics) //nolint:forbidigo // it goes on where the caller expects it
	}
}

// latest returns the latest stream, or nil.
func (s *clientStream) latest() *attemptStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
