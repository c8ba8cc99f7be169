package sim

import (
	"cmp"

	"github.com/seed90641741/spillway/internal/requests"
)

// strike begins a fault, or ends it.
func (s *Sim) strike(i uint32, ends bool) {
	f := &s.config.Faults[i]
	if f.Kind == Herd {
		s.herd(f)
		return
	}
	if !ends && f.For > 0 && f.Kind != Expensive {
		s.push(int64(f.For), fail, ref{i, 1})
	}
	for _, t := range s.services[s.config.service(f.Service)].tasks[:f.Tasks] {
		t.suffer(f, ends)
		t.schedule()
	}
}

func (s *Sim) herd(f *Fault) {
	for _, g := range s.groups {
		if g.config.Name != f.Clients {
			continue
		}
		for i := range cmp.Or(f.Calls, g.config.Count) {
			g.call(int32(i%g.config.Count), false)
		}
	}
}

// suffer makes a fault felt by a task, or takes it away.
func (t *task) suffer(f *Fault, ends bool) {
	one := 1
	if ends {
		one = -1
	}
	switch f.Kind {
	case Outage, Lose:
		t.down += one
		if f.Kind == Lose {
			t.gone += one
		}
		if !ends {
			t.kill()
		}
	case Hang:
		t.account()
		if t.frozen += one; t.frozen == 0 {
			t.thaw()
		}
	case Drop:
		t.drops += one
	case Reject:
		t.rejects += one
	case Slow:
		t.slow = t.slowness()
	case Expensive:
		r := t.takeRequest()
		r.task, r.then, r.work, r.arrived = t, (*task).freeRequest, int64(f.Cost), true
		t.ready.push(r)
	case Herd:
	}
}

// holds reports whether an event has to wait, as the task that it happens in stands still. A
// nil task does not.
func (t *task) holds(e *event) bool {
	if t == nil || t.frozen == 0 {
		return false
	}
	t.held.push(*e)
	return true
}

// thaw lets happen what was held up while the task stood still.
func (t *task) thaw() {
	for t.held.n > 0 {
		e := t.held.oldest()
		t.push(0, e.kind(), e.ref)
	}
}

// slowness is how many times as long all takes: the product of the faults that say so.
func (t *task) slowness() float64 {
	slow := 1.0
	for i := range t.Sim.config.Faults {
		f := &t.Sim.config.Faults[i]
		over := f.For > 0 && t.now >= int64(f.At+f.For)
		if f.Kind == Slow && f.Service == t.config.Name && t.index < f.Tasks && t.now >= int64(f.At) && !over {
			slow *= f.Factor
		}
	}
	return slow
}

// kill ends all requests of a process that dies, and what it knew.
func (t *task) kill() {
	for _, c := range t.Sim.calls {
		if c.task() == t {
			c.edge.drop(c)
		}
	}
	for _, e := range t.calls { // which had no calls left
		c := &e.callers[t.index]
		*c = caller{turn: c.turn}
	}
	for _, r := range t.requests {
		if r.task != t || !r.arrived {
			continue
		}
		if r.caller == (ref{}) { // an Expensive fault
			t.freeRequest(r)
			continue
		}
		r.gen++ // what was to happen to it does not
		r.queues, r.open, r.admission, r.reply = false, 0, requests.Admission{}, broken
		t.end(r)
	}
	t.account()
	t.renew()
	for _, e := range t.edges {
		if e.to != t.service || t.config.Connect == 0 {
			continue
		}
		for i := range e.callers {
			e.callers[i].connected &^= e.bit(int32(i), t.index)
		}
	}
}

func (t *task) memory() float64 {
	return t.config.Memory.Base + float64(t.config.Memory.PerRequest*float64(t.present))
}

// crashes reports whether the task needs more memory than it has, and ends it if so.
func (t *task) crashes() bool {
	m := &t.config.Memory
	if m.Limit == 0 || t.memory() <= m.Limit {
		return false
	}
	t.down++
	t.crashed++
	t.kill()
	t.push(int64(m.Restart), restart, ref{id: uint32(t.number)})
	return true
}
