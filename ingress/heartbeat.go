package ingress

import (
	"sync"
	"sync/atomic"
	"time"
)

// heartbeat informs the limits every 10 ms, while requests come, that this process runs. A
// late heartbeat shows that it did not.
type heartbeat struct {
	armed  atomic.Bool
	again  atomic.Bool // a request came since the last
	silent atomic.Bool // nothing was answered for a second
	mu     sync.Mutex
	timer  *time.Timer // nil: not yet, or closed
	done   bool
	quiet  int // heartbeats since the last request came
}

const heartbeatEvery = 10 * time.Millisecond

// silence is after how many heartbeats without a request the waiters are looked for: nothing is parked sooner.
const silence = int(time.Second / heartbeatEvery)

// beat makes sure that heartbeats come. It is called for each request.
func (s *Server) beat() {
	h := &s.heart
	if !h.again.Load() {
		h.again.Store(true)
	}
	if !h.armed.Load() && !h.armed.Swap(true) {
		s.pulse(true)
	}
}

// tick is when a heartbeat is due. They end when no request has come since the last one and
// none is at work or waits.
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

// rest ends the heartbeats. A request that has come since tick has looked has seen them armed, and has begun none.
func (s *Server) rest() {
	h := &s.heart
	s.core.Shedder().Limit.Rest()
	h.armed.Store(false)
	if h.again.Load() && !h.armed.Swap(true) {
		s.pulse(true)
	}
}

// pulse is one heartbeat, and has the next one come. Time alone may let a waiter in: what is in flight for long no
// longer counts. Requests that come or end look for waiters, so that this matters in a silence.
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

// busy reports whether this process uses most of its processors. What only passes requests
// on is not what they wait for.
func (s *Server) busy() bool {
	return s.load.CPU() > scarce && !s.config.Load().ProxyOnly
}

// scarce is the share of the processors' time above which they are what is short.
const scarce = 0.75

// stop ends the heartbeats.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
