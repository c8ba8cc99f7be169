package ingress

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// must returns a Server of an idle process with one processor.
func must(tb testing.TB, c Config) *Server {
	tb.Helper()
	s, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1} }
	return s
}

// occupy makes s serve one request, and its one processor busy for good, and for longer than
// a burst, in a bubble.
func occupy(t *testing.T, s *Server) *Slot {
	t.Helper()
	p, r := enter(s, spillway.Call{Key: "occupies"})
	if r.Rejected() {
		t.Fatalf("%+v", r)
	}
	idle, busy := shed.State{Processors: 1}, shed.State{Processors: 1, Runnable: 5}
	s.core.State = func(time.Time) shed.State { return busy }
	s.dispatcher.idle.close()
	s.dispatcher.idle = nap{}
	by, last := s.core.Shedder(), new(shed.Waiter)
	by.Arrive(time.Now(), &spillway.Call{}, &busy, last)
	for range 20 { // one is let in, and another one waits
		time.Sleep(10 * time.Millisecond)
		last = new(shed.Waiter)
		by.Arrive(time.Now(), &spillway.Call{}, &busy, last)
		w, _ := by.Next(time.Now(), idle)
		w.Ticket.Settle(time.Now(), spillway.OutcomeServed)
	}
	by.Withdraw(last)
	return &p
}

// nap is idle every millisecond, in a bubble.
type nap struct{}

func (nap) wait()        { time.Sleep(time.Millisecond) }
func (nap) rest()        {}
func (nap) close() error { return nil }

// log is an Observer.
type log struct {
	mu     sync.Mutex
	events []spillway.Event
}

func (l *log) Observe(e spillway.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// take returns what was observed, in short, and forgets it.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, e := range l.events {
		word := e.Outcome.String()
		if e.Rejected {
			word = "rejected"
		}
		if e.Mode == spillway.ModeObserve {
			word += " (observe)"
		}
		all = append(all, e.Policy+" "+word)
	}
	l.events = nil
	return strings.Join(all, ", ")
}

func perCustomer(tb testing.TB, rate float64) quota.Config {
	tb.Helper()
	local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: rate}})
	if err != nil {
		tb.Fatal(err)
	}
	return quota.Config{Allocator: local}
}

func enter(s *Server, call spillway.Call) (Slot, Rejection) {
	return s.Enter(context.Background(), call, ratelimit.Caller{})
}
