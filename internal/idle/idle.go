// Package idle finds out when the handler of a stream waits for an event: it has begun to answer, and then neither sends
// anything nor reads from the client for a while. A health watch, a subscription, and server-sent events do so for hours. They occupy
// memory, and are no work.
package idle

import (
	"sync"
	"time"
)

// After is how long a handler that has begun to answer sends nothing until it counts as waiting. From outside, a handler that
// works looks the same: the tokens of a language model come several times per second, and the rows of a report sooner. Such
// a stream holds its place.
const After = 2 * time.Second

// A Slot is the right of a request to be served.
type Slot interface {
	Suspend(now time.Time)
	Resume(now time.Time)
}

// A Stream suspends a request while its handler waits for an event. It is safe for concurrent use. The zero Stream is that of a
// handler that has sent nothing.
type Stream struct {
	mu    sync.Mutex
	of    Slot
	timer *time.Timer
	rests bool // the handler has sent what there was
	idle  bool // the request is suspended
	ended bool
}

// Rest reports that the handler has sent something. The Slot is always the same.
func (s *Stream) Rest(of Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.rests = true; {
	case s.ended:
	case s.timer == nil:
		s.of, s.timer = of, time.AfterFunc(After, s.expire)
	default:
		s.timer.Reset(After)
	}
}

// Wake reports that the handler works: it has received something, or is about to send something.
func (s *Stream) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

// End reports that the handler returns. From then on the Slot may serve another request.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
	if s.ended = true; s.timer != nil {
		s.timer.Stop()
	}
}

func (s *Stream) wake() {
	if s.rests = false; s.idle {
		s.idle = false
		s.of.Resume(time.Now())
	}
}

// expire suspends a request whose handler has been quiet for long enough.
func (s *Stream) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rests && !s.idle && !s.ended {
		s.idle = true
		s.of.Suspend(time.Now())
	}
}
