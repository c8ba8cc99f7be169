package spillgrpc

import (
	"context"
	"io"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// RecvMsg implements [grpc.ClientStream].
func (s *clientStream) RecvMsg(m any) error {
	var as *attemptStream
	for {
		if as = s.next(as); as == nil {
			if s.err == nil {
				return io.EOF
			}
			return s.err
		}
		err := as.RecvMsg(m)
		if err == nil {
			s.received(as)
			if !s.desc.ServerStreams {
				as.tell(nil) // there is no further message
			}
			return nil
		}
		as.tell(err)
	}
}

// Header implements [grpc.ClientStream].
func (s *clientStream) Header() (metadata.MD, error) {
	var as *attemptStream
	for {
		if as = s.next(as); as == nil {
			return nil, nil //nolint:nilnil // as grpc has it: RecvMsg says why
		}
		md, err := as.Header()
		switch {
		case err != nil:
			as.tell(err)
		case md != nil:
			s.received(as)
			return md, nil
		}
	}
}

// Trailer implements [grpc.ClientStream].
func (s *clientStream) Trailer() metadata.MD {
	if as := s.latest(); as != nil {
		return as.Trailer()
	}
	return nil
}

// Context implements [grpc.ClientStream]. While another attempt is possible,
// it is the context of the call.
func (s *clientStream) Context() context.Context {
	if as := s.latest(); as != nil && s.final() {
		return as.Context()
	}
	return s.ctx
}

// CloseSend implements [grpc.ClientStream].
func (s *clientStream) CloseSend() error {
	s.mu.Lock()
	s.sent.closed = true
	as := s.current
	s.mu.Unlock()
	if as == nil {
		return nil
	}
	return as.CloseSend()
}

// SendMsg implements [grpc.ClientStream].
func (s *clientStream) SendMsg(m any) error {
	as, kept := s.keep(m)
	switch {
	case kept && as == nil: // it will be sent on the next stream
		return nil
	case as == nil:
		return io.EOF
	}
	err := as.SendMsg(m)
	if kept && err == io.EOF { //nolint:errorlint // the sentinel itself, as grpc has it
		return nil // it will be sent again, or else RecvMsg says why
	}
	return err
}

// keep keeps a message for another attempt, and returns the stream to send it on
// now, which is nil if absent. A message that cannot be kept commits the
// call to the stream that it is sent on, for which it waits.
func (s *clientStream) keep(m any) (as *attemptStream, kept bool) {
	for {
		s.mu.Lock()
		changed := s.changed
		switch {
		case s.ended:
			as = nil
		case s.committed:
			as = s.current
		case s.sent.add(m, s.desc.ClientStreams):
			as, kept = s.current, true
		case s.current != nil:
			s.commit()
			as = s.current
		default:
			s.mu.Unlock()
			<-changed
			continue
		}
		s.mu.Unlock()
		return as, kept
	}
}

// How much of what was sent is kept for another attempt, where a call sends more
// than one message: what fits into the window that a stream has in the beginning,
// so that sending it again does not wait for the receiver.
const (
	maxReplayBytes    = 64 << 10
	maxReplayMessages = 32
)

// replay is what was sent on a stream so far.
type replay struct {
	messages []proto.Message
	bytes    int
	closed   bool // and no more will be
}

// add keeps a copy of m, if it can: a message is the caller's again when SendMsg has returned, and may be changed or sent
// once more. The only message of a call is kept whatever its size.
func (r *replay) add(m any, several bool) bool {
	p, ok := m.(proto.Message)
	if !ok || several && !r.hasRoom(p) {
		return false
	}
	r.messages = append(r.messages, proto.Clone(p))
	return true
}

// hasRoom reports whether a further message is kept, and counts its bytes.
func (r *replay) hasRoom(m proto.Message) bool {
	if len(r.messages) == maxReplayMessages {
		return false
	}
	r.bytes += proto.Size(m)
	return r.bytes <= maxReplayBytes
}
