package ingress

import (
	"sync"
	"sync/atomic"
	"time"
)

// A heartbeat informs the limits every 10 ms that this process runs, while requests come, wait or
// are at work. A late heartbeat shows that the process did not run.
type heartbeat struct {
	armed  atomic.Bool // another heartbeat comes
	again  atomic.Bool // a request came since the last heartbeat
	silent atomic.Bool // no request was answered for a second
	mu     sync.Mutex  // guards the fields below
	timer  *time.Timer // nil until the first heartbeat
	done   bool        // the Server is closed
	quiet  int         // heartbeats since the last request came
}

const heartbeatEvery = 10 * time.Millisecond

// silence is the number of heartbeats without a request after which the dispatcher looks for
// waiters. A limit can only let in a waiter without any event when it parks a request, and that
// takes longer.
const silence = int(time.Second / heartbeatEvery)

// beat makes sure that heartbeats come. Each request calls it.
func (s *Server) beat() {
	h := &s.heart
	if !h.again.Load() {
		h.again.Store(true)
	}
	if !h.armed.Load() && !h.armed.Swap(true) {
		s.pulse(true)
	}
}

// tick is called when a heartbeat is due. Heartbeats end when no request has come since the last
// one and none is at work or waits.
func (s *Server) tick() {
	h := &s.heart
	limit := s.core.Shedder().Limit
	working, _ := limit.Working()
	came := h.again.Swap(false)
	if working == 0 && s.core.Waiting() == 0 && !came {
		s.rest()
		return
	}
	s.pulse(came)
}

// rest ends the heartbeats. A request may have come since tick read the field again. It found the
// heartbeats armed and did not begin them, so rest begins them for it.
func (s *Server) rest() {
	h := &s.heart
	s.core.Shedder().Limit.Rest()
	h.armed.Store(false)
	if h.again.Load() && !h.armed.Swap(true) {
		s.pulse(true)
	}
}

// pulse is one heartbeat, and sets the timer for the next one. Requests that come or end wake the
// waiters, so pulse does so only after a second without a request: time alone may let a waiter in,
// as a request that is in flight for long no longer counts.
func (s *Server) pulse(came bool) {
	h := &s.heart
	h.silent.Store(s.core.Shedder().Limit.Beat(time.Now(), s.busy()))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quiet++; came {
		h.quiet = 0
	}
	switch {
	case h.done:
		return
	case h.timer == nil:
		h.timer = time.AfterFunc(heartbeatEvery, s.tick)
	default:
		h.timer.Reset(heartbeatEvery)
	}
	if h.quiet >= silence {
		s.wakeWaiters()
	}
}

// busy reports whether this process uses most of its processors. A process that only forwards
// requests is never busy, as they do not wait for its processors.
func (s *Server) busy() bool {
	return s.load.CPU() > scarce && !s.config.Load().ProxyOnly
}

// scarce is the share of the processors' time above which processors are the scarce resource.
const scarce = 0.75

// stop ends the heartbeats for good.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
