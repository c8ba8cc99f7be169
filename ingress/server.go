package ingress

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/late"
	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Server decides on the requests to one process: it has the policies, and the clock, the
// timers and the measures of the process by which they decide. It is safe for concurrent use;
// make one with [New] and close it when the last request has ended. If a Signal or an Observer
// panics in a goroutine of the Server, the panic goes on in the next Enter.
type Server struct {
	core       requests.Core          // makes the decisions
	config     atomic.Pointer[Config] // with its defaults; the core has its own snapshot
	load       *load.Meter
	heart      heartbeat
	dispatcher dispatcher
	panicked   late.Panic // of a Signal or an Observer, in a goroutine of the Server
	update     sync.Mutex // one Update at a time

	collections sync.WaitGroup // of garbage
}

// companions is the number of goroutines of each request that are ready to run and are no work: the
// one by which net/http notices that the client has left.
const companions = 1

// New returns a Server, or an error that names the field of c that is wrong.
func New(c Config) (s *Server, err error) {
	s = new(Server)
	s.core.Shell = requests.Shell{State: s.process, NewWaiter: newWaiter, Companions: companions, Secret: true}
	if err := s.configure(c); err != nil {
		return nil, err
	}
	if s.load, err = load.New(c.measures()); err != nil {
		return nil, invalid.In("ingress", "Load", err)
	}
	s.dispatcher.idle = newIdle()
	return s, nil
}

// Update changes the configuration of a Server in use, or returns an error that names the field
// that is wrong and changes nothing. The policies keep their state, except the shedder when it
// begins to enforce after it has observed: what it learned of requests that were not held back
// says nothing of the requests that it admits. Requests in flight end under the old configuration.
func (s *Server) Update(c Config) error {
	s.update.Lock()
	defer s.update.Unlock()
	tried, err := load.New(c.measures())
	if err != nil {
		return invalid.In("ingress", "Load", err)
	}
	if err := errors.Join(tried.Close(), s.configure(c)); err != nil {
		return err
	}
	s.wakeWaiters() // a limit may have been raised
	return s.load.Update(c.measures())
}

// configure checks c, and has the Server use all of it but Load.
func (s *Server) configure(c Config) (err error) {
	if c.Trust, err = c.Trust.withDefaults(); err != nil {
		return err
	}
	if err = s.core.Update(c.requests()); err == nil {
		s.config.Store(&c)
	}
	return err
}

// Trust returns how much of its claims a request is believed. The result must not be changed. An
// Update of the Server leaves it as it is: ask once for each request.
func (s *Server) Trust() *Trust { return &s.config.Load().Trust }

// WantsCaller reports whether Enter needs the caller now: a rate limit may exempt it, or
// requests wait or are rejected, and callers are treated fairly. Otherwise an adapter need not
// determine the caller.
func (s *Server) WantsCaller() bool { return s.core.WantsCaller() }

// Enter asks all gates in turn whether a request may be served. It may wait: for a token of the
// rate limit, if that has a queue and the token comes before the deadline, and in the waiting queue
// of the shedder. If [Rejection.Rejected] reports true, the request must not be served. Otherwise
// Done of the Slot must be called exactly once, when the request has ended; defer it, so that a
// panic ends the request too. The earlier of the deadlines of ctx and the call counts.
//
// from identifies the caller, for exemptions from the rate limit. Enter reads the clock once,
// and again after it has waited. It allocates nothing unless it waits. [Slot.EnterAt] is Enter
// for callers that have already read the clock.
func (s *Server) Enter(ctx context.Context, call spillway.Call, from ratelimit.Caller) (p Slot, r Rejection) {
	r = p.EnterAt(ctx, s, time.Now(), &call, &from)
	return
}

// Reject reports whether a request would be rejected if it came now, for adapters that can reject
// more cheaply before they have read the request. It asks the gates that Enter asks, in the same
// order, until one would have the request wait, and never waits. If [Rejection.Rejected] reports
// true, the rejection was counted and reported. If not, nothing was counted or taken, and Enter
// must still be called for the request.
func (s *Server) Reject(call spillway.Call, from ratelimit.Caller) Rejection {
	return s.RejectAt(context.Background(), time.Now(), &call, &from)
}

// RejectAt is Reject at the time now, for callers that have already read the clock. A call
// without a Level gets a random one, which must be that of the call when it enters. RejectAt
// keeps neither call nor from. Ctx is the Context of the event, and may be nil.
func (s *Server) RejectAt(ctx context.Context, now time.Time, call *spillway.Call, from *ratelimit.Caller) (r Rejection) {
	s.core.Reject(ctx, now, call, from, (*requests.Rejection)(&r))
	return r
}

// Charge charges cost to the quota of a customer, at the time now, for what the customer costs
// apart from requests, such as TLS handshakes and idle connections. The unit is that of
// [quota.Config.Cost]: a request, by default. See [quota.Quota.ChargeCustomer]. Without a quota
// it does nothing.
func (s *Server) Charge(now time.Time, customer string, cost float64) {
	s.core.Charge(now, customer, cost)
}

// Work returns how many requests have begun since the start, and the share of the processors'
// time that the process uses. It is for the limit on new connections: see Work of
// connlimit.Config. While the shedder does not enforce, both are zero.
func (s *Server) Work(now time.Time) (begun uint64, cpu float64) {
	if !s.core.Sheds() {
		return 0, 0
	}
	begun = s.core.Begun(now)
	s.sample(now)
	return begun, s.load.CPU()
}

// sample has the load read what it measures. A listener that accepts connections cannot recover
// from a Signal that panics; the next request can.
func (s *Server) sample(now time.Time) {
	defer s.panicked.Keep()
	s.load.Utilization(now)
}

// Waiting returns how many requests wait in the queues of the shedder and of MaxInFlight. It
// takes no lock.
func (s *Server) Waiting() int { return s.core.Waiting() }

// process returns the state of the process at the time now.
func (s *Server) process(now time.Time) shed.State {
	u, x := s.load.Utilization(now), s.load.Executor(now)
	if s.load.ShortOfMemory() {
		s.collect(now)
	}
	return shed.State{Runnable: x.Runnable, Processors: x.Processors, CPU: s.load.CPU(), Utilization: u}
}

// Missing returns an error for each source of load that is not available. These are not
// failures; log them once.
func (s *Server) Missing() []error { return s.load.Missing() }

// Close closes the files of the Server, and waits for its goroutines, which it has while requests
// wait. Call it when the last request has ended.
func (s *Server) Close() error {
	s.heart.stop()
	err := s.dispatcher.stop()
	s.collections.Wait()
	return errors.Join(err, s.load.Close())
}
