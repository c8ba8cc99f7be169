package ingress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// A shadow is the way that a request would take through the gates that observe if
// they enforced. Where it would wait, the request goes on and the shadow waits,
// in a separate goroutine. Then it stays in flight for the time that the request took.
type shadow struct {
	Passage

	came           time.Time
	refused, waits bool
	runs           bool        // after it has waited; under the lock of the Passage, as is
	suspended      int         // how often the request was suspended while the shadow waited
	ended          chan ending // receives one value if it waits
	leave          context.CancelFunc
}

// ending is the result of a request.
type ending struct {
	took    time.Duration
	o, told spillway.Outcome
}

// cast returns the shadow of p, which has still to see any gate.
func (p *Passage) cast() *shadow {
	return &shadow{
		Passage: Passage{server: p.server, settings: p.settings, call: p.call, start: p.start, mode: spillway.Observe},
		came:    p.start,
	}
}

// look asks a gate, unless one before has refused, or is yet to decide.
func (s *shadow) look(gate int, from *ratelimit.Caller) {
	if s.refused || s.waits {
		return
	}
	w, err := s.ask(gate, from)
	if w == (wait{}) {
		s.refused = s.take(gate, err) != nil
		return
	}
	var ctx context.Context
	ctx, s.leave = context.WithCancel(context.Background()) // that of the request ends with it
	s.waits, s.ended = true, make(chan ending, 1)
	caller := *from
	s.server.shadows.Go(func() { s.follow(ctx, gate, w, &caller) })
}

// follow waits at a gate, asks those behind, and ends as late as it would have.
func (s *shadow) follow(ctx context.Context, gate int, w wait, from *ratelimit.Caller) {
	defer s.leave()
	err := s.take(gate, s.await(ctx, w))
	for gate++; gate < gates && err == nil; gate++ {
		if s.settings.modes[gate] == spillway.Observe {
			err = s.pass(ctx, gate, from)
		}
	}
	if err != nil {
		return
	}
	begin := time.Now()
	s.begin(begin)
	e := <-s.ended
	_ = pause(ctx, time.Until(begin.Add(e.took))) // it ends either way
	s.mu.lock()
	defer s.mu.unlock()
	s.settle(s.server, time.Now(), e.o, e.told)
}

// begin ends the wait. If the request waits for its client, so does the shadow from now on.
func (s *shadow) begin(now time.Time) {
	s.mu.lock()
	defer s.mu.unlock()
	s.runs = true
	for range s.suspended {
		s.Passage.suspend(now)
	}
}

// suspend is [Passage.Suspend].
func (s *shadow) suspend(now time.Time) {
	if s == nil {
		return
	}
	s.mu.lock()
	defer s.mu.unlock()
	if s.waits && !s.runs {
		s.suspended++
	} else {
		s.Passage.suspend(now)
	}
}

// resume is [Passage.Resume].
func (s *shadow) resume(now time.Time) {
	if s == nil {
		return
	}
	s.mu.lock()
	defer s.mu.unlock()
	if s.waits && !s.runs {
		s.suspended--
	} else {
		s.Passage.resume(now)
	}
}

// end reports the result of the request at the time now.
func (s *shadow) end(now time.Time, o, told spillway.Outcome) {
	switch {
	case s == nil || s.refused:
	case !s.waits:
		s.settle(s.server, now, o, told)
	default:
		s.ended <- ending{now.Sub(s.came), o, told}
		if o == spillway.Abandoned {
			s.leave()
		}
	}
}
