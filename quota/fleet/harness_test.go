package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
)

const (
	ms     = time.Millisecond
	tick   = 5 * ms
	window = 100 * ms
)

var t0 = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// A stream is the calls of one customer and class at one task, independent of one another.
type stream struct {
	customer string
	class    spillway.Criticality
	rate     float64
}

// cell counts calls by class.
type cell struct {
	admitted, rejected [spillway.Criticalities]float64
}

func (c *cell) add(class int, admitted bool) {
	if admitted {
		c.admitted[class]++
	} else {
		c.rejected[class]++
	}
}

// A node is one task of a service.
type node struct {
	fleet *Fleet
	gate  *quota.Quota
	link  *link
	skew  time.Duration // of its clock
	last  time.Duration // when it synced
	next  time.Duration
	down  bool
	cells []cell
}

// A link is the way of one node to the board of its service.
type link struct {
	*service
	cut  bool
	hold bool // what it publishes, instead of delivering it
	held []Publication
}

var errCut = errors.New("cut off")

func (l *link) Sync(ctx context.Context, s Said) (Heard, error) {
	if l.cut || l.board == nil {
		return Heard{}, errCut
	}
	return l.board.Sync(ctx, s)
}

func (l *link) Publish(ctx context.Context, p Publication) error {
	switch {
	case l.hold:
		l.held = append(l.held, p)
		return context.DeadlineExceeded
	case l.cut || l.board == nil:
		return errCut
	}
	return l.board.Publish(ctx, p)
}

func (l *link) Leave(ctx context.Context, task string) error { return l.board.Leave(ctx, task) }

// A service is a number of nodes in virtual time.
type service struct {
	t        *testing.T
	rand     *rand.Rand
	at       time.Duration
	board    *Memory // nil: gone
	config   Config
	nodes    []*node
	load     func(i int, at time.Duration) []stream
	events   func(at time.Duration)
	since    time.Duration // when it begins to count by customer
	customer map[string]*cell
}

func (s *service) now() time.Time { return t0.Add(s.at) }

// newService starts n tasks, which have expected one another.
func newService(t *testing.T, n int, c Config, load func(int, time.Duration) []stream) *service {
	t.Helper()
	race.SkipOneGoroutine(t)
	s := &service{t: t, rand: rand.New(rand.NewPCG(7, uint64(n))), config: c, load: load, customer: map[string]*cell{}}
	s.board = NewMemory(s.now)
	for range n {
		s.start()
	}
	return s
}

// start adds a task that syncs at once, as Run does.
func (s *service) start() *node {
	s.t.Helper()
	return s.startAs(fmt.Sprintf("task-%02d", len(s.nodes)))
}

// startAs is start with a name.
func (s *service) startAs(name string) *node {
	s.t.Helper()
	c := s.config
	c.Task = name
	f, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	f.incarnation = s.rand.Uint64()
	gate, err := quota.New(quota.Config{Allocator: f, MaxUnlisted: 10000})
	if err != nil {
		s.t.Fatal(err)
	}
	n := &node{fleet: f, gate: gate, link: &link{service: s}}
	s.nodes = append(s.nodes, n)
	s.sync(n)
	n.next = s.at + time.Duration(s.rand.Int64N(int64(f.cfg.Interval)))
	return n
}

func (s *service) sync(n *node) {
	n.last, n.next = s.at, s.at+n.fleet.cfg.Interval
	_ = n.fleet.Sync(context.Background(), s.now().Add(n.skew), n.link)
}

// run lets time pass until the end.
func (s *service) run(end time.Duration) {
	for ; s.at < end; s.at += tick {
		if s.events != nil {
			s.events(s.at)
		}
		for i, n := range s.nodes {
			if !n.down {
				s.step(i, n)
			}
		}
	}
}

func (s *service) step(i int, n *node) {
	if s.at >= n.next || s.at-n.last >= n.fleet.cfg.Interval/4 && n.isUrgent() {
		s.sync(n)
	}
	for len(n.cells) <= int(s.at/window) {
		n.cells = append(n.cells, cell{})
	}
	now := s.now().Add(n.skew)
	for _, x := range s.load(i, s.at) {
		for range s.poisson(x.rate * tick.Seconds()) {
			ticket, err := n.gate.Admit(now, spillway.Call{Customer: x.customer, Criticality: x.class})
			if err == nil {
				ticket.Settle(now, spillway.OutcomeServed)
			}
			n.cells[s.at/window].add(x.class.Index(), err == nil)
			if s.at >= s.since {
				c := s.customer[x.customer]
				if c == nil {
					c = new(cell)
					s.customer[x.customer] = c
				}
				c.add(x.class.Index(), err == nil)
			}
		}
	}
}

func (n *node) isUrgent() bool {
	select {
	case <-n.fleet.urgent:
		return true
	default:
		return false
	}
}

// poisson returns how many independent calls come when l are expected.
func (s *service) poisson(l float64) (n int) {
	for p := s.rand.Float64(); p > math.Exp(-l); n++ {
		p *= s.rand.Float64()
	}
	return n
}

// sum adds up what nodes counted from a to b, per second; of all nodes if which is nil.
func (s *service) sum(a, b time.Duration, which func(i int) bool) (c cell) {
	for i, n := range s.nodes {
		if which != nil && !which(i) {
			continue
		}
		for w := int(a / window); w < int(b/window) && w < len(n.cells); w++ {
			for class := range c.admitted {
				c.admitted[class] += n.cells[w].admitted[class] / (b - a).Seconds()
				c.rejected[class] += n.cells[w].rejected[class] / (b - a).Seconds()
			}
		}
	}
	return c
}

func total(x [spillway.Criticalities]float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// admitted is what all nodes admitted from a to b, per second.
func (s *service) admitted(a, b time.Duration) float64 { return total(s.sum(a, b, nil).admitted) }

// extremes are the least and most that were admitted in any second from a to b.
func (s *service) extremes(a, b time.Duration) (least, most float64) {
	least = math.Inf(1)
	for ; a+time.Second <= b; a += window {
		x := s.admitted(a, a+time.Second)
		least, most = min(least, x), max(most, x)
	}
	return least, most
}

// within fails the test if a figure is not from least to most.
func within(t *testing.T, what string, x, least, most float64) {
	t.Helper()
	t.Logf("%s: %.4g", what, x)
	if !(x >= least && x <= most) {
		t.Errorf("%s is %.4g, want %.4g to %.4g", what, x, least, most)
	}
}

// zipf is the part of task i of 20, where the first has the most.
func zipf(i int) float64 {
	h := 0.
	for k := range 20 {
		h += 1 / float64(k+1)
	}
	return 1 / float64(i+1) / h
}

// mail is the one customer, with a limit for all tasks.
func mail(rate float64) Config {
	return Config{Tasks: 20, Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: rate}}}}
}

// skewed is demand of the first customer that is uneven over tasks.
func skewed(rate float64) func(int, time.Duration) []stream {
	return func(i int, _ time.Duration) []stream {
		return []stream{{"mail", spillway.Critical, rate * zipf(i)}}
	}
}

// even is demand that is the same at all tasks.
func even(rate float64, n int) func(int, time.Duration) []stream {
	return func(int, time.Duration) []stream {
		return []stream{{"mail", spillway.Critical, rate / float64(n)}}
	}
}
