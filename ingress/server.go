package ingress

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/degradation"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/late"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Server decides on the requests to one process: it is a [Core] with clock, timers and
// measures of the process. It is safe for concurrent use; make one with [New] and close it
// when the last request has ended. If a Signal or an Observer panics in a goroutine of the Server, the panic goes on in
// the next Enter.
type Server struct {
	core       Core
	load       *load.Meter
	heart      heartbeat
	dispatcher dispatcher
	panicked   late.Panic // of a Signal or an Observer, in a goroutine of the Server
	update     sync.Mutex // one Update at a time

	collections sync.WaitGroup // of garbage
}

// companions is how many goroutines a request brings along that are ready to run
// and are no work: the one by which net/http notices that the client has left.
const companions = 1

// New returns a Server, or an error that names the field of c that is wrong.
func New(c Config) (s *Server, err error) {
	s = new(Server)
	s.core.state, s.core.companion, s.core.secret, s.core.waiters.New = s.process, companions, true, newWaiter
	if err := s.core.Update(c); err != nil {
		return nil, err
	}
	if s.load, err = load.New(c.meter()); err != nil {
		return nil, invalid.In("ingress", "Load", err)
	}
	s.dispatcher.idle = newIdle()
	return s, nil
}

// Update changes the configuration of a Server in use, as [Core.Update] does, or returns an error
// that names the field that is wrong and changes nothing.
func (s *Server) Update(c Config) error {
	s.update.Lock()
	defer s.update.Unlock()
	tried, err := load.New(c.meter())
	if err != nil {
		return invalid.In("ingress", "Load", err)
	}
	if err := errors.Join(tried.Close(), s.core.Update(c)); err != nil {
		return err
	}
	s.wakeWaiters() // a limit may be higher
	return s.load.Update(c.meter())
}

// Trust returns how much of its claims a request is believed. The result must not be changed. An
// Update of the Server leaves it as it is: ask once for each request.
func (s *Server) Trust() *Trust { return &s.core.settings.Load().config.Trust }

// WantsCaller reports whether Enter needs the caller now: a rate limit may exempt it, or
// requests wait or are rejected, and callers are treated fairly. Otherwise an adapter need not
// determine the caller.
func (s *Server) WantsCaller() bool {
	st := s.core.settings.Load()
	return st.modes[limitGate] != spillway.ModeOff || st.shedders[shedGate].asked().TellsCallersApart() || st.shedders[flightGate].asked().TellsCallersApart()
}

// Enter asks all gates in turn whether a request may be served. It may wait: for a token of
// the rate limit, if that has a queue and the token comes before the deadline, and in the
// waiting queue of the shedder. If the Rejection that it returns is one, the request must not
// be served. Otherwise Done of the Slot must be called exactly once, when the request has
// ended; defer it, so that a panic ends the request too. The earlier of the deadlines of ctx
// and the call counts.
//
// from identifies the caller, for exemptions from the rate limit. Enter reads the clock once,
// and again after it has waited. It allocates nothing unless it waits.
func (s *Server) Enter(ctx context.Context, call spillway.Call, from ratelimit.Caller) (Slot, Rejection) {
	return s.EnterAt(ctx, time.Now(), call, from)
}

// EnterAt is Enter at the time now, for callers that have already read the clock.
func (s *Server) EnterAt(ctx context.Context, now time.Time, call spillway.Call, from ratelimit.Caller) (p Slot, r Rejection) {
	r = p.EnterAt(ctx, s, now, &call, &from)
	return
}

// Reject is [Core.Reject] now, for adapters that can reject more cheaply before they have read the
// request. It never waits.
func (s *Server) Reject(call spillway.Call, from ratelimit.Caller) Rejection {
	return s.RejectAt(context.Background(), time.Now(), &call, &from)
}

// RejectAt is Reject at the time now, for callers that have read the clock. It keeps neither call nor from.
// Ctx is the Context of the event, and may be nil.
func (s *Server) RejectAt(ctx context.Context, now time.Time, call *spillway.Call, from *ratelimit.Caller) Rejection {
	return s.core.Reject(ctx, now, call, from)
}

// Charge charges cost to the quota of a customer, at the time now, for what the customer costs
// apart from requests, such as TLS handshakes and idle connections. The unit is that of
// [quota.Config.Cost]: a request, by default. See [quota.Quota.ChargeCustomer]. Without a quota
// it does nothing.
func (s *Server) Charge(now time.Time, customer string, cost float64) {
	if st := s.core.settings.Load(); st.quota != nil && st.modes[quotaGate] != spillway.ModeOff {
		st.quota.ChargeCustomer(now, customer, cost)
	}
}

// Work returns how many requests have begun since the start, and the share of the processors' time that
// the process uses. It is for the limit on new connections: see Work of connlimit.Config. While the
// shedder does not enforce, both are zero.
func (s *Server) Work(now time.Time) (begun uint64, cpu float64) {
	st := s.core.settings.Load()
	if st.modes[shedGate] != spillway.ModeEnforce {
		return 0, 0
	}
	for _, class := range st.shedders[shedGate].Stats(now).Classes {
		begun += class.AdmittedTotal
	}
	s.sample(now)
	return begun, s.load.CPU()
}

// sample has the load read what it measures. A listener that accepts connections cannot recover from a Signal that panics; the next
// request can.
func (s *Server) sample(now time.Time) {
	defer s.panicked.Keep()
	s.load.Utilization(now)
}

// Waiting returns how many requests wait in the queues of the shedder and of MaxInFlight. It takes no lock.
func (s *Server) Waiting() int { return s.core.Waiting() }

// process returns the state of the process.
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

// Close closes the files of the Server and waits for its goroutines, if there are
// any: there are while requests wait.
// Call it when the last request has ended.
func (s *Server) Close() error {
	s.heart.stop()
	err := s.dispatcher.stop()
	s.collections.Wait()
	return errors.Join(err, s.load.Close())
}

// Stats is the state of the policies of a [Server].
type Stats struct {
	RateLimit ratelimit.Stats
	Quota     []quota.CustomerStats // nil without a quota
	// InFlight is the waiting queue before MaxInFlight, and Shed that of the shedder.
	InFlight, Shed shed.Stats
	// Concurrency is what the shedder's limits on requests at work know.
	Concurrency concurrency.Stats
	Load        load.Stats
	Attempts    attempts.Stats // of an internal listener
	// Degradation is how far answers are degraded, by class.
	Degradation degradation.Stats
	// RejectedTotal is the number of requests rejected since the start, by the Outcome of the
	// [Rejection].
	RejectedTotal [spillway.Outcomes]uint64
	// Costs is what Config.Costs has learned.
	Costs cost.Stats
	// Modes are the modes of the gates. A gate without a limit is off.
	Modes Modes
}

// Stats returns the levels of all policies at the time now.
func (s *Server) Stats(now time.Time) Stats {
	c := &s.core
	st := c.settings.Load()
	all := Stats{
		RateLimit:   st.limiter.Stats(now),
		InFlight:    st.shedders[flightGate].asked().Stats(now),
		Shed:        st.shedders[shedGate].asked().Stats(now),
		Concurrency: st.shedders[shedGate].limit.Stats(now),
		Load:        s.load.Stats(now),
		Attempts:    st.histogram.Stats(now),

		Degradation: c.signals.degrader.Stats(now),
		Modes:       modesOf(st.modes),
	}
	for o := range c.rejected {
		all.RejectedTotal[o] = c.rejected[o].Load()
	}
	if st.quota != nil {
		all.Quota = st.quota.Stats(now)
	}
	if st.config.Costs != nil {
		all.Costs = st.config.Costs.Stats(now)
	}
	return all
}
