package serving

import (
	"sync/atomic"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/idle"
)

// A Stream is the slot of a call whose handler exchanges messages with its client. While the handler waits for the client, for
// a message or for the window to send one, or for an event after it has sent something, it does no work. The zero Stream with a Clock is
// ready for use.
type Stream struct {
	Clock *clock.Clock
	Slot  ingress.Slot

	answers atomic.Bool // something was sent
	events  idle.Stream
}

// Receive has next receive a message.
func (s *Stream) Receive(m any, next func(any) error) error {
	s.Slot.Suspend(s.Clock.Now())
	defer func() {
		s.events.Wake()
		s.Slot.Resume(s.Clock.Now())
	}()
	return next(m)
}

// Send has next send a message.
func (s *Stream) Send(m any, next func(any) error) error {
	s.Begin()
	s.Slot.Suspend(s.Clock.Now())
	defer func() {
		s.Slot.Resume(s.Clock.Now())
		s.Rest()
	}()
	return next(m)
}

// Begin reports that something will be sent.
func (s *Stream) Begin() {
	s.events.Wake()
	if !s.answers.Swap(true) {
		s.Slot.Answer(s.Clock.Now())
	}
}

// Rest reports that something was sent. If the handler sends nothing for a while, it waits for an event.
func (s *Stream) Rest() { s.events.Rest(&s.Slot) }

// End reports that the handler has returned.
func (s *Stream) End() { s.events.End() }
