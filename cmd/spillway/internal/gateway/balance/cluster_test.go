//go:build !race

// The model runs on one goroutine: there is nothing for the race detector to find.

package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// The model is a cluster in virtual time: requests arrive at random, endpoints serve so
// many at once, let a few wait and reject the others, and what one rejects is sent again
// at once, elsewhere, up to three attempts and for a tenth of the requests.

// A server is an endpoint of the model.
type server struct {
	slots, queue int
	service      func() time.Duration
	hint         time.Duration // with rejections
	rejects      func(class spillway.Criticality) bool
	hangs        bool

	busy     int
	waiting  []*request
	served   int
	rejected int
	asked    int
}

type request struct {
	arrived  time.Time
	class    spillway.Criticality
	attempts int
	tried    []*Endpoint
	pick     Pick
	path     int
}

type event struct {
	at int64 // nanoseconds since the start
	do func()
}

// events is a heap as in container/heap, whose interface would allocate each event.
type events []event

func (e *events) push(x event) {
	*e = append(*e, x)
	h := *e
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[i].at >= h[parent].at {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (e *events) pop() event {
	h := *e
	n := len(h) - 1
	first := h[0]
	h[0], h[n] = h[n], event{}
	h = h[:n]
	*e = h
	for i, child := 0, 1; child < n; child = 2*i + 1 {
		if right := child + 1; right < n && h[right].at < h[child].at {
			child = right
		}
		if h[child].at >= h[i].at {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	return first
}

type model struct {
	t         testing.TB
	random    *rand.Rand
	now       time.Time
	start     time.Time
	events    events
	set       *Set
	endpoints []*Endpoint
	servers   []*server
	budget    float64
	retries   bool
	rejectAll func(path int) bool // of a path, at all endpoints
	hintAll   time.Duration
	reports   func(s *server) Load
	from      time.Time // what arrived before is not counted

	calls, ok, attempts int
	latencies           []time.Duration
}

func newModel(t testing.TB, c Config, servers ...*server) *model {
	t.Helper()
	m := &model{t: t, random: rand.New(rand.NewPCG(1, 7)), servers: servers, budget: 3, retries: true}
	m.start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.now = m.start
	c.Rand = m.random.Float64
	for range servers {
		m.endpoints = append(m.endpoints, newEndpoint(m.random.Float64))
	}
	m.set = New(c, m.start, m.endpoints)
	return m
}

func (m *model) after(d time.Duration, do func()) {
	m.events.push(event{int64(m.now.Sub(m.start) + d), do})
}

func (m *model) exponential(mean time.Duration) time.Duration {
	return time.Duration(m.random.ExpFloat64() * float64(mean))
}

// load has requests arrive at a rate, for a time.
func (m *model) load(rate float64, d time.Duration, class spillway.Criticality, path int) {
	end := m.now.Add(d)
	var arrive func()
	arrive = func() {
		if m.now.After(end) {
			return
		}
		m.budget = min(m.budget+0.1, 100)
		r := &request{arrived: m.now, class: class, path: path}
		if !r.arrived.Before(m.from) {
			m.calls++
		}
		m.send(r)
		m.after(m.exponential(time.Duration(float64(time.Second)/rate)), arrive)
	}
	m.after(m.exponential(time.Duration(float64(time.Second)/rate)), arrive)
}

// run runs the model for a time.
func (m *model) run(d time.Duration) {
	end := m.now.Add(d)
	for len(m.events) > 0 && m.events[0].at <= int64(end.Sub(m.start)) {
		e := m.events.pop()
		m.now = m.start.Add(time.Duration(e.at))
		e.do()
	}
	m.now = end
}

func (m *model) counts(r *request) bool { return !r.arrived.Before(m.from) }

func (m *model) send(r *request) {
	r.pick = m.set.Pick(m.now, r.class, r.tried)
	r.attempts++
	if m.counts(r) {
		m.attempts++
	}
	s := m.servers[r.pick.Index]
	s.asked++
	switch {
	case s.hangs:
		m.after(time.Second, func() {
			m.end(r, Answer{Outcome: spillway.OutcomeTimedOut, Class: r.class, Failed: true})
		})
	case s.rejects != nil && s.rejects(r.class):
		m.reject(r, s.hint)
	case m.rejectAll != nil && m.rejectAll(r.path):
		m.reject(r, m.hintAll)
	case s.busy < s.slots:
		m.serve(s, r)
	case len(s.waiting) < s.queue:
		s.waiting = append(s.waiting, r)
	default:
		m.reject(r, s.hint)
	}
}

func (m *model) serve(s *server, r *request) {
	s.busy++
	m.after(s.service(), func() {
		s.busy--
		s.served++
		if m.reports != nil {
			x := m.endpoints[r.pick.Index]
			if m.set.Wants(m.now, x) {
				m.set.Report(m.now, x, m.reports(s))
			}
		}
		m.end(r, Answer{Outcome: spillway.OutcomeServed, Class: r.class})
		if len(s.waiting) > 0 {
			next := s.waiting[0]
			s.waiting = s.waiting[1:]
			m.serve(s, next)
		}
	})
}

func (m *model) reject(r *request, hint time.Duration) {
	m.servers[r.pick.Index].rejected++
	m.after(500*time.Microsecond, func() {
		m.end(r, Answer{Outcome: spillway.OutcomeOverloaded, Class: r.class, Hint: hint})
	})
}

// end takes an answer in, and sends the request again if that may be.
func (m *model) end(r *request, a Answer) {
	x := m.endpoints[r.pick.Index]
	m.set.Answered(m.now, &r.pick, a)
	x.End()
	switch {
	case a.Outcome == spillway.OutcomeServed:
		if m.counts(r) {
			m.ok++
			m.latencies = append(m.latencies, m.now.Sub(r.arrived))
		}
	case a.Outcome == spillway.OutcomeOverloaded && m.retries && r.attempts < 3 && m.budget >= 1:
		r.tried = append(r.tried, x)
		m.budget--
		m.send(r)
	}
}

func (m *model) success() float64 { return float64(m.ok) / float64(m.calls) }

func (m *model) amplification() float64 { return float64(m.attempts) / float64(m.calls) }

func (m *model) p99() time.Duration {
	if len(m.latencies) == 0 {
		return 0
	}
	slices.Sort(m.latencies)
	return m.latencies[len(m.latencies)*99/100]
}

func (m *model) String() string {
	s := fmt.Sprintf("%d calls, success %.4f, amplification %.3f, p99 %v;", m.calls, m.success(), m.amplification(), m.p99().Round(100*time.Microsecond))
	for _, x := range m.servers {
		s += fmt.Sprintf(" [asked %d, rejected %d]", x.asked, x.rejected)
	}
	return s
}

// plain returns an endpoint that serves n at once, each in 20 ms on average.
func plain(random *rand.Rand, n int) *server {
	return &server{slots: n, queue: n, service: func() time.Duration {
		return time.Duration((0.5 + random.Float64()) * float64(20*time.Millisecond))
	}}
}
