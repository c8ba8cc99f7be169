package sim

import (
	"context"
	"iter"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// A Sim is a system in virtual time. It is made by [New], run once by [Sim.Run],
// and not safe for concurrent use; any number of them may run side by side.
type Sim struct {
	config   Config
	services []*service
	tasks    []*task
	groups   []*group
	edges    []*edge

	agenda  agenda
	now     int64     // nanoseconds since the start
	clock   time.Time // the same, for policies
	slots   int
	streams uint64
	events  uint64
	begun   uint64 // calls
	witness witness

	calls        []*call
	freeCalls    []*call
	requests     []*request
	freeRequests []*request
}

// A witness observes decisions; tests use it to compare them with the decisions of the real
// stacks.
type witness struct {
	attempt  func(c *call)                           // is sent
	ended    func(c *call, o outcome)                // the call has
	entered  func(r *request)                        // the server policies are asked
	rejected func(r *request, why ingress.Rejection) // the server policies have
	replied  func(r *request)                        // the task has
}

var nobody = witness{
	func(*call) {}, func(*call, outcome) {}, func(*request) {}, func(*request, ingress.Rejection) {}, func(*request) {},
}

// epoch is the time at which every simulation starts.
var epoch = time.Unix(1_000_000_000, 0).UTC()

// New returns a system that nothing has happened to, or an error that
// wraps a [spillway.FieldError].
func New(c Config) (*Sim, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Sim{config: c, clock: epoch, witness: nobody, slots: int((c.Duration + c.Step - 1) / c.Step)}
	for i := range c.Services {
		s.services = append(s.services, s.newService(&c.Services[i]))
	}
	for i, v := range s.services {
		for j := range c.Services[i].Calls {
			v.calls = append(v.calls, s.newEdge(&c.Services[i].Calls[j], v.config.most(), nil))
		}
	}
	for i := range c.Clients {
		s.groups = append(s.groups, s.newGroup(&c.Clients[i]))
	}
	return s, nil
}

// stream returns a new source of random numbers. Each has its own number, so
// that none depends on how much others are used.
func (s *Sim) stream() *stream {
	s.streams++
	return newStream(s.config.Seed, s.streams)
}

// pass moves the clock on.
func (s *Sim) pass(at int64) { s.now, s.clock = at, epoch.Add(time.Duration(at)) }

// push schedules an event after some nanoseconds.
func (s *Sim) push(after int64, k kind, of ref) { s.agenda.push(s.now+after, k, of) }

// windowsAt returns the places of the windows that a time is in.
func (s *Sim) windowsAt(ns int64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.config.Windows {
			if w := &s.config.Windows[i]; int64(w.From) <= ns && ns < int64(w.To) && !yield(i) {
				return
			}
		}
	}
}

// slotOf returns the slot of the series that a time is in.
func (s *Sim) slotOf(ns int64) int { return min(int(ns/int64(s.config.Step)), s.slots-1) }

// Run lets all the time pass, and returns what was measured. If ctx ends first, it
// returns its error.
func (s *Sim) Run(ctx context.Context) (*Result, error) {
	for i := range s.config.Faults {
		s.push(int64(s.config.Faults[i].At), fail, ref{id: uint32(i)})
	}
	s.push(int64(s.config.Step), sample, ref{})
	for i, v := range s.services {
		if v.config.Autoscale.Max > 0 {
			s.push(int64(scaleEvery), scale, ref{id: uint32(i)})
		}
	}
	for _, g := range s.groups {
		g.start()
	}
	end := int64(s.config.Duration)
	for e := s.agenda.pop(); e.at <= end; e = s.agenda.pop() { // there is always a sample to come
		s.pass(e.at)
		s.happen(&e)
		if s.events++; s.events%(1<<14) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	s.pass(end)
	return s.result(), nil
}

// happen does what an event is about, if that is still to happen.
func (s *Sim) happen(e *event) {
	switch e.kind() {
	case arrive:
		s.groups[e.id].arrived()
	case think:
		s.groups[e.gen].call(int32(e.id), true)
	case fail:
		s.strike(e.id, e.gen == 1)
	case restart:
		s.tasks[e.id].down--
	case scale:
		s.services[e.id].scale()
	case begin:
		s.tasks[e.id].begun(e.gen)
	case sample:
		s.sample()
	case send, expire:
		c := s.callOf(e.ref)
		switch {
		case c == nil || c.task().holds(e):
		case e.kind() == send:
			c.edge.attempt(c)
		default:
			c.edge.expired(c)
		}
	default:
		if r := s.requestOf(e.ref); r != nil {
			s.proceed(e, r)
		}
	}
}

// proceed does what an event is about that is about a request.
func (s *Sim) proceed(e *event, r *request) {
	switch t, k := r.task, e.kind(); {
	case k == reach:
		t.reached(r)
	case k == leave:
		t.abandoned(r)
	case k == answer:
		c := s.callOf(r.caller)
		if c != nil && c.task().holds(e) {
			return
		}
		if c != nil {
			c.edge.answered(c, r.reply, r.hint, r.ratio)
		}
		s.freeRequest(r)
	case t.holds(e):
	case k == worked:
		t.worked(r)
	case k == waited:
		t.waited(r)
	default: // outstay
		t.outstayed(r)
	}
}

func (s *Sim) sample() {
	for _, g := range s.groups {
		g.sampled()
	}
	if s.config.Progress != nil {
		s.config.Progress(time.Duration(s.now))
	}
	s.push(int64(s.config.Step), sample, ref{})
}
