package ingress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Server decides on the requests to one process. It is safe for concurrent
// use; make one with [New] and close it when the last request has ended.
type Server struct {
	settings   atomic.Pointer[settings]
	shed       *shed.Shedder // those of the settings, which never change
	load       *load.Meter
	dispatcher dispatcher
	waiters    sync.Pool                  // of *waiter
	state      func(time.Time) shed.State // process, but in tests
	update     sync.Mutex                 // one Update at a time
}

// New returns a Server, or an error that names the field of c that is wrong.
func New(c Config) (*Server, error) {
	st, err := build(c)
	if err != nil {
		return nil, err
	}
	s := &Server{shed: st.shed, load: st.load, waiters: sync.Pool{New: newWaiter}}
	s.settings.Store(st)
	s.state = s.process
	if s.dispatcher.idle, err = newIdle(); err != nil {
		return nil, errors.Join(fmt.Errorf("ingress: %w", err), st.load.Close())
	}
	return s, nil
}

// Update changes the configuration of a Server in use, or returns an error that
// names the field that is wrong and changes nothing. What the policies have
// learnt is kept; requests under way end as they began.
func (s *Server) Update(c Config) error {
	st, err := build(c)
	if err != nil {
		return err
	}
	s.update.Lock()
	defer s.update.Unlock()
	if err := st.adopt(s.settings.Load()); err != nil {
		return err
	}
	s.settings.Store(st)
	return nil
}

// Trust returns how much of its claims a request is believed.
func (s *Server) Trust() Trust { return s.settings.Load().config.Trust }

// Limits reports whether there is a rate limit, for whose exemptions Enter wants
// to know the caller. Where there is none an adapter need not find out.
func (s *Server) Limits() bool { return s.settings.Load().has[limitGate] }

// Enter asks all gates in turn whether a request may be served. It may wait: for
// a token of the rate limit where that has a queue, and in the shedder's room. If
// the Refusal that it returns is one, the request must not be served. Otherwise
// Done of the Passage must be called exactly once, when the request has ended;
// defer it, so that a panic ends the request too. A deadline of ctx that is
// earlier than the call's counts.
//
// from is what is known of the caller, for exemptions from the rate limit. Enter
// reads the clock once, and again after it has waited. It allocates nothing
// unless it waits.
func (s *Server) Enter(ctx context.Context, call spillway.Call, from ratelimit.Caller) (Passage, Refusal) {
	st := s.settings.Load()
	if st.exempt(call) {
		return Passage{}, Refusal{}
	}
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	p := Passage{server: s, settings: st, call: call, start: time.Now()}
	st.observe(p.start, call)
	r := p.enter(ctx, from)
	if r.Refused() {
		return Passage{}, r
	}
	return p, Refusal{}
}

// Refuse reports whether the shedder would refuse a request if it came now, and
// if so counts and reports the refusal. It never waits. Where the answer is no
// Refusal nothing was counted, and the request must still Enter. It is for
// adapters that can refuse more cheaply before they have read the request.
func (s *Server) Refuse(call spillway.Call) Refusal {
	st := s.settings.Load()
	if st.config.ShedMode != spillway.Enforce || st.exempt(call) {
		return Refusal{}
	}
	now := time.Now()
	err := s.shed.Refuse(now, call, s.state(now))
	if err == nil {
		return Refusal{}
	}
	st.observe(now, call)
	p := Passage{server: s, settings: st, call: call, start: now}
	p.report(shedGate, spillway.Event{Refused: true, Err: err})
	return st.refuse(now, call, Overloaded, err)
}

// process is what the shedder is told of the process.
func (s *Server) process(now time.Time) shed.State {
	u := s.load.Utilization(now)
	x := s.load.Executor(now)
	return shed.State{Runnable: x.Runnable, Processors: x.Processors, CPU: s.load.CPU(), Utilization: u}
}

// Missing returns an error for each source of load that is not there. It is no
// failure; log it once.
func (s *Server) Missing() []error { return s.load.Missing() }

// Close closes the files of the Server and waits for its goroutine, if there is
// one: there is while requests wait. Call it when the last request has ended.
func (s *Server) Close() error { return errors.Join(s.dispatcher.stop(), s.load.Close()) }

// Stats says how the policies of a [Server] stand.
type Stats struct {
	RateLimit ratelimit.Stats
	Quota     []quota.CustomerStats // nil without a quota
	Shed      shed.Stats
	Load      load.Stats
	Attempts  attempts.Stats // of an internal listener
}

// Stats returns the levels of all policies at the time now.
func (s *Server) Stats(now time.Time) Stats {
	st := s.settings.Load()
	all := Stats{
		RateLimit: st.limiter.Stats(now),
		Shed:      st.shed.Stats(),
		Load:      st.load.Stats(now),
		Attempts:  st.histogram.Stats(now),
	}
	if st.quota != nil {
		all.Quota = st.quota.Stats(now)
	}
	return all
}
