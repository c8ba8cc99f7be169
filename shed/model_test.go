package shed_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// model is what must hold of a Shedder whatever it has learnt: who is where, in
// plain slices.
type model struct {
	t       *testing.T
	s       *shed.Shedder
	now     time.Time
	queue   [spillway.Criticalities][]*shed.Waiter // from the oldest on
	order   []*shed.Waiter                         // all of them, from the oldest on
	free    []*shed.Waiter                         // to be used again
	flight  []spillway.Ticket
	settled int
}

func (m *model) waiting() (n int) {
	for _, q := range m.queue {
		n += len(q)
	}
	return n
}

func (m *model) lowest() int {
	return slices.IndexFunc(m.queue[:], func(q []*shed.Waiter) bool { return len(q) > 0 })
}

func (m *model) oldest() *shed.Waiter { return m.order[0] }

// atAnEnd reports whether w is the oldest or the newest of its class.
func (m *model) atAnEnd(class int, w *shed.Waiter) bool {
	q := m.queue[class]
	return w == q[0] || w == q[len(q)-1]
}

func (m *model) remove(w *shed.Waiter) {
	class := w.Owner.(spillway.Criticality).Index()
	i := slices.Index(m.queue[class], w)
	if i < 0 {
		m.t.Fatal("a waiter left twice")
	}
	m.queue[class] = slices.Delete(m.queue[class], i, i+1)
	m.order = slices.DeleteFunc(m.order, func(x *shed.Waiter) bool { return x == w })
	m.free = append(m.free, w)
}

func (m *model) waiter(c spillway.Criticality) *shed.Waiter {
	w := new(shed.Waiter)
	if n := len(m.free); n > 0 {
		w, m.free = m.free[n-1], m.free[:n-1]
	}
	w.Owner = c
	return w
}

func (m *model) arrive(c spillway.Criticality, st shed.State) {
	w := m.waiter(c)
	lowest := m.lowest()
	d := m.s.Arrive(m.now, &spillway.Call{Criticality: c}, &st, w)
	if e := d.Evicted; e != nil {
		class := e.Owner.(spillway.Criticality).Index()
		if class != lowest || class >= c.Index() || !m.atAnEnd(class, e) || e.Err == nil || e.Ticket.By != nil {
			m.t.Fatal("evicted somebody else than who runs last of the lowest class")
		}
		m.remove(e)
	}
	switch d.Verdict {
	case shed.Run:
		if m.waiting() > 0 {
			m.t.Fatal("a request ran past waiters")
		}
		m.flight = append(m.flight, d.Ticket)
	case shed.Wait:
		m.queue[c.Index()] = append(m.queue[c.Index()], w)
		m.order = append(m.order, w)
	case shed.Rejected:
		if d.Err == nil || d.Ticket.By != nil {
			m.t.Fatalf("rejected with %+v", d)
		}
	default:
		m.t.Fatalf("no verdict: %+v", d)
	}
}

func (m *model) next(st shed.State) {
	w, _ := m.s.Next(m.now, st)
	if w == nil {
		return
	}
	class := w.Owner.(spillway.Criticality).Index()
	if w.Err != nil {
		if class != m.lowest() || !m.atAnEnd(class, w) || w.Ticket.By != nil {
			m.t.Fatal("rejected another waiter than who runs last of the lowest class")
		}
		m.remove(w)
		return
	}
	if w != m.oldest() && slices.ContainsFunc(m.queue[class+1:], func(q []*shed.Waiter) bool { return len(q) > 0 }) {
		m.t.Fatal("a waiter ran before an older one and before one of a higher class")
	}
	if !m.atAnEnd(class, w) {
		m.t.Fatal("a waiter ran that is neither the oldest nor the newest")
	}
	m.flight = append(m.flight, w.Ticket)
	m.remove(w)
}

func (m *model) settle(i int) {
	if len(m.flight) == 0 {
		return
	}
	i %= len(m.flight)
	t := m.flight[i]
	t.Settle(m.now, spillway.OutcomeServed)
	m.flight = slices.Delete(m.flight, i, i+1)
	m.settled++
}

// leave takes out some waiter.
func (m *model) leave(i int, how func(*shed.Waiter) bool) {
	class := m.lowest()
	if class < 0 {
		return
	}
	w := m.queue[class][i%len(m.queue[class])]
	if !how(w) || how(w) {
		m.t.Fatal("a waiter does not leave exactly once")
	}
	if w.Err != nil && w.Ticket.By != nil {
		m.t.Fatal("a rejected waiter holds a ticket")
	}
	m.remove(w)
}

func (m *model) check(op int) {
	st := m.s.Stats(time.Time{})
	var admitted uint64
	for _, c := range st.Classes {
		admitted += c.AdmittedTotal
		if c.RejectedRatio < 0 || c.RejectedRatio > 1 {
			m.t.Fatalf("op %d: rejected share %v", op, c.RejectedRatio)
		}
	}
	if st.Waiting != m.waiting() || m.s.Waiting() != m.waiting() {
		m.t.Fatalf("op %d: %d wait, the model says %d", op, st.Waiting, m.waiting())
	}
	if n := st.InFlight + st.Parked; n != len(m.flight) || st.InFlight < 0 || st.Parked < 0 {
		m.t.Fatalf("op %d: %d in flight and %d parked, the model says %d", op, st.InFlight, st.Parked, len(m.flight))
	}
	if admitted != uint64(len(m.flight)+m.settled) {
		m.t.Fatalf("op %d: %d admitted, the model says %d", op, admitted, len(m.flight)+m.settled)
	}
	if st.Depth < 2 || st.Depth > 49*2 { // for up to four processors
		m.t.Fatalf("op %d: limits %+v", op, st)
	}
}

// drive feeds random operations to a Shedder and to the model.
func drive(t *testing.T, next func() uint32, ops int) {
	t.Helper()
	u := rand.New(rand.NewPCG(1, 2))
	m := &model{t: t, s: must(t, shed.Config{Rand: u.Float64, Limit: limiter(t, concurrency.Config{Fixed: true, MaxInFlight: 12})}), now: t0}
	for op := range ops {
		r := next()
		m.now = m.now.Add(time.Duration(r>>8%256-16) * 50 * time.Microsecond)
		if r>>16%500 == 0 {
			m.now = m.now.Add(3 * time.Second)
		}
		st := shed.State{Processors: int(r >> 10 % 3), Runnable: int(r >> 12 % 3), CPU: float64(r>>20%2) * 0.9, Utilization: float64(r>>22%16) / 14}
		switch r % 8 {
		case 0, 1, 2, 3:
			m.arrive(spillway.Criticality(r>>26%4)-2, st)
		case 4:
			m.next(st)
		case 5, 6:
			m.settle(int(r >> 24))
		default:
			how := m.s.Expire
			if r>>28%2 == 0 {
				how = m.s.Withdraw
			}
			m.leave(int(r>>24), how)
		}
		m.check(op)
	}
}

func TestAgainstModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		drive(t, r.Uint32, 3000)
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 255, 254, 253, 252, 7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		drive(t, func() uint32 {
			v := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
			data = data[4:]
			return v
		}, min(len(data)/4, 1000))
	})
}
